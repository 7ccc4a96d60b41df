// Package server is for having a MongoDB-protocol server where there is no DocumentDB: FerretDB in this process, its data in SQLite
// files, on one port of 127.0.0.1.
//
// FerretDB's findAndModify and update are not atomic: they read and write in two steps. DocumentDB's are, and the suite relies on it.
// So clients do not speak to FerretDB itself but to a proxy that lets one message at a time through.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// Server answers until it is closed.
type Server struct {
	url   string
	proxy *proxy
	end   context.CancelFunc
	ended chan struct{} // closed when FerretDB is gone
}

// Start answers on listen, an address such as 127.0.0.1:18006. The data lies in dir, which is made if it is missing, and is there again
// after the next start. A port that is taken is an error at once.
func Start(listen, dir string, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("documentdb: %w", err)
	}
	// A name that begins with @ is no file: nothing stays behind when the process is killed.
	socket := "@framerun-documentdb-" + rand.Text()
	database, err := open(dir, socket, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("documentdb: %w", err), listener.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Server{
		url:   "mongodb://" + listener.Addr().String() + "/framerun?directConnection=true",
		proxy: &proxy{listener: listener, socket: socket, open: map[net.Conn]bool{}}, end: end, ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		_ = database.Run(ctx) // never fails
	}()
	go s.proxy.run()
	return s, nil
}

func open(dir, socket string, log *slog.Logger) (*ferretdb.FerretDB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	data := url.URL{Scheme: "file", Path: dir + "/"}
	return ferretdb.New(&ferretdb.Config{
		Listener: ferretdb.ListenerConfig{Unix: socket}, Handler: "sqlite", SQLiteURL: data.String(), Logger: log,
	})
}

// URL is where the server answers, with the name of the suite's database in it.
func (s *Server) URL() string { return s.url }

// Close ends all connections and the server. Its data stays.
func (s *Server) Close() error {
	err := s.proxy.close()
	s.end()
	<-s.ended
	return err
}
