package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"framerun.dev/deploy/bench/load"
)

// bare is the handler that does nothing but write an answer, in a process of its own as the service is. It runs only during its rounds.
func (s *suite) bare(answer model, ready requests) contender {
	const name = "bare net/http"
	return contender{name: name, run: func(ctx context.Context, clients, n int) (load.Sample, error) {
		address := fmt.Sprintf("127.0.0.1:%d", s.portBase+barePort)
		stop, err := s.startBare(ctx, address, answer)
		if err != nil {
			return load.Sample{}, err
		}
		defer stop()
		again := asking(name, "", ready, answer.Status, func() string { return address })
		if _, err := again.run(ctx, clients, min(n, 20*clients)); err != nil { // the process is new: let it grow as the service has
			return load.Sample{}, err
		}
		return again.run(ctx, clients, n)
	}}
}

// startBare runs this program's bare command and returns when it listens.
func (s *suite) startBare(ctx context.Context, address string, answer model) (stop func(), err error) {
	told, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("bench: bare: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "bench"), "bare", address)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(told)), s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: bare: %w", err)
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	for deadline := time.Now().Add(5 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return stop, nil
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("bench: bare: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// serveBare answers everything at address with the model on in, until the process is killed.
func serveBare(in io.Reader, address string) error {
	var answer model
	if err := json.UnmarshalRead(in, &answer); err != nil {
		return fmt.Errorf("bench: bare: %w", err)
	}
	if !strings.HasPrefix(address, "127.0.0.1:") {
		return fmt.Errorf("bench: bare: %q is not an address of this machine", address)
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.Status)
		w.Write(answer.Body)
	}))
}
