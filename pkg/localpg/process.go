package localpg

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child that ends with this process.
type process struct {
	pid    int
	handle *os.Process
	done   chan struct{} // closed when the child is gone
	err    error         // how it ended; to be read after done
}

// spawn starts cmd from a thread that stays until the child is gone. The kernel sends a child its parent-death signal
// when the thread that made it ends, and Go ends threads as it likes: without the lock the server would die at random.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.handle, p.pid = cmd.Process, cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

// end asks the child by sig to go and waits for it; what does not go within ten seconds is killed with its children.
func (p *process) end(sig syscall.Signal) error {
	if err := p.handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-p.done:
		return nil
	case <-patience.C:
	}
	if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.done
	return nil
}
