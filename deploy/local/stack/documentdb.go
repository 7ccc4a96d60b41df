package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"framerun.dev/pkg/resultdoc"
)

// startDocumentDB starts the stand-in for DocumentDB, if it is wanted, as a process of its own: it takes minutes to build, so this
// program is not made of it. Like the database it begins empty, but it keeps its data when it is killed and started again.
func (s *Stack) startDocumentDB(ctx context.Context) error {
	if !s.config.DocumentDB {
		return nil
	}
	program, data := filepath.Join(s.config.Bin, "documentdb"), filepath.Join(s.config.Dir, "documentdb")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%s is not built: make up DOCUMENTDB=on builds it", program)
	}
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	s.onStop("the DocumentDB folder", func() error { return os.RemoveAll(data) })
	log, err := s.logFile("documentdb")
	if err != nil {
		return err
	}
	address := s.ports.address(documentPort)
	p := &process{name: "documentdb", path: program, env: []string{"LISTEN=" + address, "DATA=" + data}, log: log, say: s.say}
	s.processes[p.name] = p
	s.onStop("DocumentDB", func() error { return p.stop(drainWithin) })
	if err := p.start(); err != nil {
		return err
	}
	s.address.DocumentDB = new("mongodb://" + address + "/framerun?directConnection=true")
	return s.openDocuments(ctx)
}

// openDocuments waits until the store answers. The scripted worker goes on with this way in.
func (s *Stack) openDocuments(ctx context.Context) error {
	documents, err := resultdoc.Open(*s.address.DocumentDB)
	if err != nil {
		return err
	}
	s.documents = documents
	s.onStop("the worker's documents", func() error { return documents.Close(context.WithoutCancel(ctx)) })
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := documents.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("stack: DocumentDB did not become ready; its log is %s", filepath.Join(s.logs(), "documentdb.log")), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
