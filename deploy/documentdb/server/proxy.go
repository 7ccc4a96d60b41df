package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	headerSize  = 16       // length, request id, response to, operation: four little-endian int32
	messageMost = 48 << 20 // MongoDB's own bound of a message
	opMsg       = 2013
	moreToCome  = 1 << 1           // of opMsg's flags: the client wants no answer
	patience    = 10 * time.Second // for one answer of the server behind
)

// proxy gives each client a connection of its own to the server behind, and lets one message of all of them through at a time, from
// its first byte to the last byte of its answer.
type proxy struct {
	listener net.Listener
	socket   string
	turn     sync.Mutex

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	all    sync.WaitGroup
}

func (p *proxy) run() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.all.Go(func() { p.serve(client) })
	}
}

// serve carries one client's messages until either side hangs up.
func (p *proxy) serve(client net.Conn) {
	behind, err := net.Dial("unix", p.socket)
	if err != nil {
		client.Close()
		return
	}
	if !p.note(client, behind) {
		return
	}
	defer p.forget(client, behind)
	for {
		message, err := readMessage(client)
		if err != nil {
			return
		}
		answer, err := p.ask(behind, message)
		if err != nil {
			return
		}
		if !wantsAnswer(message) {
			continue
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// ask sends one message when its turn has come and reads the answer.
func (p *proxy) ask(behind net.Conn, message []byte) (answer []byte, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := behind.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := behind.Write(message); err != nil {
		return nil, err
	}
	return readMessage(behind)
}

// wantsAnswer tells whether the client waits for one. FerretDB answers in any case.
func wantsAnswer(message []byte) bool {
	operation := binary.LittleEndian.Uint32(message[12:])
	return operation != opMsg || len(message) < headerSize+4 || binary.LittleEndian.Uint32(message[headerSize:])&moreToCome == 0
}

func readMessage(from io.Reader) ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(header[:])
	if length < headerSize || length > messageMost {
		return nil, fmt.Errorf("a message of %d bytes", length)
	}
	message := make([]byte, length)
	copy(message, header[:])
	_, err := io.ReadFull(from, message[headerSize:])
	return message, err
}

// note remembers connections for close. It reports false, and closes them, if that has been already.
func (p *proxy) note(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			c.Close()
			continue
		}
		p.open[c] = true
	}
	return !p.closed
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// close hangs up on everybody and waits until that is done.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		err = errors.Join(err, c.Close())
	}
	p.mu.Unlock()
	p.all.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
