package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errPortTaken is the one failure that another port mends.
var errPortTaken = errors.New("the port is taken")

// refuseTaken says at once that a wished port cannot be had, before any work is done for it.
func refuseTaken(port int) error {
	if port != 0 && !free(port) {
		return fmt.Errorf("port %d on 127.0.0.1 is taken: end what listens there or choose another", port)
	}
	return nil
}

// serve runs postgres on the wished port, or on free ones until one is still free when postgres asks for it.
func (p programs) serve(ctx context.Context, data string, cfg Config) (int, *process, error) {
	if cfg.Port != 0 {
		running, err := p.serveOn(ctx, cfg.Port, data, cfg)
		return cfg.Port, running, err
	}
	for range 5 {
		port, err := freePort()
		if err != nil {
			return 0, nil, err
		}
		running, err := p.serveOn(ctx, port, data, cfg)
		if !errors.Is(err, errPortTaken) {
			return port, running, err
		}
	}
	return 0, nil, errors.New("every port tried was taken by somebody else in the same moment: try again")
}

func (p programs) serveOn(ctx context.Context, port int, data string, cfg Config) (*process, error) {
	log, err := os.OpenFile(cfg.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has its own copy
	before, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := p.command("postgres", arguments(port, data, cfg), syscall.SIGQUIT)
	cmd.Stdout, cmd.Stderr = log, log
	running, err := spawn(cmd)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := running.untilReady(ctx, data); err != nil {
		said := printedSince(cfg.LogFile, before.Size())
		if strings.Contains(said, "Address already in use") {
			err = errors.Join(err, errPortTaken)
		}
		return nil, fmt.Errorf("postgres: %w: %s", errors.Join(err, running.end(syscall.SIGQUIT)), said)
	}
	return running, nil
}

// arguments are the server's parameters: for speed where nothing needs to last, then the caller's, then the address.
func arguments(port int, data string, cfg Config) []string {
	settings := map[string]string{"timezone": "UTC", "log_timezone": "UTC"}
	if !cfg.Durable {
		// A commit is still written before it is answered (synchronous_commit), so only the machine can lose it.
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	maps.Copy(settings, cfg.Settings)
	settings["listen_addresses"] = "127.0.0.1"
	settings["port"] = strconv.Itoa(port)
	settings["unix_socket_directories"] = "" // a socket's path may have 107 bytes: a deep folder would break it

	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// untilReady waits until the server says in its pid file that it takes connections.
func (p *process) untilReady(ctx context.Context, data string) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-p.done:
			return fmt.Errorf("ended while starting (%v)", p.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", context.Cause(ctx))
		case <-look.C:
			if found := postmaster(data); found.ready && found.pid == p.pid {
				return nil
			}
		}
	}
}

// printedSince is the end of what the server has printed to its log after an offset, on one line.
func printedSince(file string, offset int64) string {
	text, err := os.ReadFile(file)
	if err != nil || int64(len(text)) < offset {
		return "its log is not to be read"
	}
	lines := bytes.Split(bytes.TrimSpace(text[offset:]), []byte("\n"))
	last := lines[max(0, len(lines)-6):]
	return string(bytes.Join(last, []byte(" | ")))
}

// freePort picks below 32768, where Linux starts to hand out ports to outgoing connections.
func freePort() (int, error) {
	for range 100 {
		if port := 20000 + rand.IntN(12001); free(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port found from 20000 to 32000 on 127.0.0.1")
}

func free(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
