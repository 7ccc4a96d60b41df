package stack

import (
	"fmt"
	"net"
	"strings"
)

// Ports are where a stack listens, all on 127.0.0.1, counted from one base.
type Ports struct{ Base int }

// DefaultBase is the first port of a stack that is not told otherwise. All ports stay below 32768, where Linux begins to give ports
// to outgoing connections.
const DefaultBase = 18000

const (
	gatewayPort = iota
	issuerPort
	sqsPort
	s3Port
	natsPort
	postgresPort
	documentPort
	servicePorts = 10 // intake, status, interaction, query; then their second processes in the same order
	opsPorts     = 20
	portsInAll   = opsPorts + 8
)

// Names are the suite's services, in the order in which their ports are counted.
var Names = []string{"intake", "status", "interaction", "query"}

func (p Ports) url(offset int) string { return "http://" + p.address(offset) }

func (p Ports) address(offset int) string { return fmt.Sprintf("127.0.0.1:%d", p.Base+offset) }

func (p Ports) service(i int) Service {
	return Service{URL: p.url(servicePorts + i), Ops: p.url(opsPorts + i)}
}

// check says which ports are taken that a stack of these processes needs, before anything is started: waiting for somebody else to go
// is no plan.
func (p Ports) check(processes []string) error {
	if p.Base < 1024 || p.Base+portsInAll > 32768 {
		return fmt.Errorf("stack: PORT_BASE must lie between 1024 and %d", 32768-portsInAll)
	}
	var taken []string
	offsets := []int{gatewayPort, issuerPort, sqsPort, s3Port, natsPort, postgresPort, documentPort}
	for _, name := range processes {
		offsets = append(offsets, servicePorts+place(name), opsPorts+place(name))
	}
	for _, offset := range offsets {
		l, err := net.Listen("tcp", p.address(offset))
		if err != nil {
			taken = append(taken, p.address(offset))
			continue
		}
		l.Close()
	}
	if len(taken) > 0 {
		return fmt.Errorf("stack: already in use: %s. Another stack may be running; stop it, or choose other ports with PORT_BASE=19000",
			strings.Join(taken, ", "))
	}
	return nil
}
