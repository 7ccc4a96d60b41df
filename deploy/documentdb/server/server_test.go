package server

import (
	"encoding/binary"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/servicetest"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// start runs a server with its data in dir until the test ends.
func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(servicetest.FreeAddress(t), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("it does not end in good order: %v", err)
		}
	})
	return s
}

// client is a way in through the real driver.
func client(t *testing.T, s *Server) *mongo.Collection {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(s.URL()).SetTimeout(10 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Disconnect(t.Context()) })
	return c.Database("framerun").Collection("documents")
}

func set(name string, value any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: name, Value: value}}}}
}

// Catches a server behind which two clients can both win: without the proxy nearly all of these races have two winners.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	all := client(t, start(t, t.TempDir()))
	for race := range 50 {
		if _, err := all.InsertOne(t.Context(), bson.D{{Key: "_id", Value: race}, {Key: "attempt", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		won, begin := make([]int64, 8), make(chan struct{})
		var racing sync.WaitGroup
		for i := range won {
			racing.Go(func() {
				<-begin
				r, err := all.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: race}, {Key: "attempt", Value: 1}}, set("attempt", 2))
				if err != nil {
					t.Error(err)
					return
				}
				won[i] = r.MatchedCount
			})
		}
		close(begin)
		racing.Wait()
		if winners := sum(won); winners != 1 {
			t.Errorf("race %d has %d winners", race, winners)
		}
	}
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// Catches data that is gone with the process, and a port that is not given back.
func TestDataOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Start(servicetest.FreeAddress(t), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, first).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "kept"}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := client(t, start(t, dir)).CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("%d documents are there, %v", n, err)
	}
}

// Catches a server that waits for a port, or listens on another one.
func TestTakenPortIsAnError(t *testing.T) {
	t.Parallel()
	taken := servicetest.Listen(t)
	defer taken.Close()
	if s, err := Start(taken.Addr().String(), t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		s.Close()
		t.Error("it started")
	}
}

// Catches a proxy that passes on an answer which nobody waits for: the client would take it for the answer to its next message.
func TestUnwantedAnswersAreKeptBack(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	conn, err := net.Dial("tcp", s.proxy.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for id, flags := range []uint32{moreToCome, moreToCome, 0} {
		if _, err := conn.Write(ping(t, uint32(id), flags)); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := readMessage(conn)
	if err != nil {
		t.Fatal(err)
	}
	if id := binary.LittleEndian.Uint32(answer[8:]); id != 2 {
		t.Errorf("the first answer is to message %d; only the last one, 2, wants one", id)
	}
}

// ping is a message that asks for a sign of life.
func ping(t *testing.T, id, flags uint32) []byte {
	t.Helper()
	body, err := bson.Marshal(bson.D{{Key: "ping", Value: int32(1)}, {Key: "$db", Value: "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	message := binary.LittleEndian.AppendUint32(nil, uint32(headerSize+4+1+len(body)))
	for _, part := range []uint32{id, 0, opMsg, flags} {
		message = binary.LittleEndian.AppendUint32(message, part)
	}
	return append(append(message, 0), body...)
}

// Catches a client that keeps the others from their turn: by hanging up in the middle of a message, by sending half of one and then
// nothing, or by sending what is no message at all.
func TestBadClientsHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	all := client(t, s)
	address := strings.TrimPrefix(s.proxy.listener.Addr().String(), "mongodb://")
	for name, bytes := range map[string]string{
		"half a header":   "\x30\x00",
		"half a message":  "\x30\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x00",
		"too long":        "\xff\xff\xff\x7f\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
		"a negative size": "\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
		"too short":       "\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
		"HTTP":            "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
		if _, err := all.InsertOne(t.Context(), bson.D{{Key: "_id", Value: name}}); err != nil {
			t.Errorf("beside %s: %v", name, err)
		}
	}
}

// Catches a server that does not end while clients are connected.
func TestCloseHangsUp(t *testing.T) {
	t.Parallel()
	s, err := Start(servicetest.FreeAddress(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := client(t, s).Database().Client().Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}
