package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a service of the suite, running as a child. When it ends without being told to, it is started again, as
// Kubernetes would do it.
type process struct {
	name string
	path string
	env  []string
	log  io.Writer
	say  func(format string, args ...any)

	mu      sync.Mutex
	pid     int           // of the child that runs now; 0 between two of them
	ended   chan struct{} // closed when that child is gone
	stopped bool
	err     error // how the last child ended
}

// restartAfter keeps a child that dies at once from being started in a loop.
const restartAfter = 300 * time.Millisecond

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped { // meanwhile, while a restart waited
		return nil
	}
	cmd := exec.Command(p.path)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.log, p.log
	// A group of its own keeps the terminal's Ctrl-C away: the stack stops its services in order. The kernel takes the child along
	// when the stack is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the parent-death signal is bound to the thread that makes the child
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.over(cmd.Wait(), ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("stack: %s: %w", p.name, err)
	}
	p.pid, p.ended = cmd.Process.Pid, ended
	return nil
}

// over notes the end of a child, and starts the next unless the stack wanted it.
func (p *process) over(err error, ended chan struct{}) {
	p.mu.Lock()
	p.pid, p.err = 0, err
	stopped := p.stopped
	p.mu.Unlock()
	close(ended)
	if stopped {
		return
	}
	p.say("%s ended (%v): %s; starting it again", p.name, exit(err), p.lastWord())
	time.AfterFunc(restartAfter, func() {
		if err := p.start(); err != nil {
			p.say("%v", err)
		}
	})
}

// lastWord is the last line of the child's log.
func (p *process) lastWord() string {
	const enough = 2000
	f, ok := p.log.(*os.File)
	if !ok {
		return ""
	}
	raw, err := os.ReadFile(f.Name())
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(raw[max(0, len(raw)-enough):]))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func exit(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// stop asks the child to drain and waits for it; what does not go in time is killed.
func (p *process) stop(patience time.Duration) error {
	p.mu.Lock()
	p.stopped = true
	pid, ended := p.pid, p.ended
	p.mu.Unlock()
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-ended:
	case <-time.After(patience):
		syscall.Kill(pid, syscall.SIGKILL)
		<-ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("stack: %s: %w", p.name, p.err)
	}
	return nil
}
