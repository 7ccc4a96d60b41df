package store_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
)

// listen opens a free port below 32768, where no outgoing connection can be in the way.
func listen(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err == nil {
			t.Cleanup(func() { l.Close() })
			return l
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return nil
}

// line is a TCP line to PostgreSQL that can be cut at a given word.
type line struct {
	url string // the database, over this line

	mu    sync.Mutex
	quiet bool
	rule  cut
	count int // how often it was cut by the present rule
}

// cut says when a line breaks: when a message to the server holds word. If the message arrives, the server acts on it and only its
// answer is lost; otherwise the message itself is.
type cut struct {
	word    string
	arrives bool
	times   int // at most; 0 means every time
}

// lineTo makes a line to the database at address.
func lineTo(t *testing.T, address string) *line {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	door := listen(t)
	u.Host = door.Addr().String()
	l := &line{url: u.String()}
	go func() {
		for {
			client, err := door.Accept()
			if err != nil {
				return // the test is over
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			go l.carry(client, server)
		}
	}()
	return l
}

// follow makes the line break by rule from now on; the zero rule mends it.
func (l *line) follow(rule cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rule, l.count = rule, 0
}

// hush makes the line swallow everything that is said to the server, or carry again.
func (l *line) hush(quiet bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet = quiet
}

func (l *line) hushed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quiet
}

// cuts reports whether message breaks the line, and by which rule.
func (l *line) cuts(message []byte) (cut, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rule.word == "" || !bytes.Contains(message, []byte(l.rule.word)) || l.rule.times > 0 && l.count >= l.rule.times {
		return cut{}, false
	}
	l.count++
	return l.rule, true
}

func (l *line) broken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// carry forwards both ways until one side ends or the line is cut.
func (l *line) carry(client, server net.Conn) {
	hangUp := func() { client.Close(); server.Close() }
	defer hangUp()
	swallow := make(chan struct{})
	go func() {
		defer hangUp()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			select {
			case <-swallow: // the server has acted on the last message; nobody hears of it
				return
			default:
			}
			if err != nil {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if l.hushed() {
			continue
		}
		rule, now := l.cuts(buffer[:n])
		if now && !rule.arrives {
			return
		}
		if now {
			close(swallow)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if now {
			io.Copy(io.Discard, client) // until the other direction hangs up
			return
		}
	}
}
