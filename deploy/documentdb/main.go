// Command documentdb stands in for DocumentDB on one machine: a MongoDB-protocol server on one port of 127.0.0.1.
//
//	LISTEN=127.0.0.1:18006 DATA=some/folder documentdb
//
// It prints its URL, one line, when it answers, and ends with SIGTERM, SIGINT or the process that has started it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"framerun.dev/deploy/documentdb/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	endWithParent()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	listen, dir := os.Getenv("LISTEN"), os.Getenv("DATA")
	// Nobody is asked for a password here, so nobody from outside may come in.
	if address, err := netip.ParseAddrPort(listen); err != nil || !address.Addr().IsLoopback() {
		return errors.New("documentdb: LISTEN must be a loopback address with a port, such as 127.0.0.1:18006")
	}
	if dir == "" {
		return errors.New("documentdb: DATA must name the folder where the data is kept")
	}
	s, err := server.Start(listen, dir, slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	fmt.Println(s.URL())
	<-ctx.Done()
	return s.Close()
}

// endWithParent asks the kernel to end this process in good order when the one that started it is gone.
func endWithParent() {
	runtime.LockOSThread() // for ever: the wish belongs to the process, but is asked for by this thread
	const prSetPdeathsig = 1
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGTERM), 0)
}
