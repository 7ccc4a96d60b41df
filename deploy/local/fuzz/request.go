package fuzz

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Request is one request as it goes over the wire: nothing in it is escaped, sorted or mended on the way out.
type Request struct {
	Service string // whose port: intake, status, interaction, query or gateway
	Method  string
	Target  string // what stands in the request line
	Header  []Field
	Body    []byte
	Chunked bool

	Raw bool // net/http itself may refuse it, in its own plain words

	route string // what the generator had in mind
	wants []int  // the statuses that alone would be right; nil: not known
}

// Field is one header line.
type Field struct{ Name, Value string }

func (r *Request) add(name, value string) { r.Header = append(r.Header, Field{name, value}) }

func (r *Request) drop(name string) {
	kept := r.Header[:0]
	for _, f := range r.Header {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	r.Header = kept
}

// values lists a header's values.
func (r *Request) values(name string) []string {
	var values []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// path is the target without its query string, and without the origin that a proxy would be told.
func (r *Request) path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	if rest, ok := strings.CutPrefix(path, "http://"); ok {
		_, path, _ = strings.Cut(rest, "/")
		return "/" + path
	}
	return path
}

// bytes is the request as HTTP/1.1 writes it. A header of the request's own stands in for one that would be added.
func (r *Request) bytes(host string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.Target)
	if len(r.values("Host")) == 0 {
		fmt.Fprintf(&b, "Host: %s\r\n", host)
	}
	for _, f := range r.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	switch {
	case r.Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		writeChunks(&b, r.Body)
		return b.Bytes()
	case len(r.values("Content-Length")) > 0:
	case len(r.Body) > 0 || r.Method == "POST":
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

func writeChunks(b *bytes.Buffer, body []byte) {
	for len(body) > 0 {
		n := min(len(body), 4096)
		fmt.Fprintf(b, "%x\r\n", n)
		b.Write(body[:n])
		b.WriteString("\r\n")
		body = body[n:]
	}
	b.WriteString("0\r\n\r\n")
}

// GoString writes the request as it can stand in the table of regressions.
func (r *Request) GoString() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Request{Service: %q, Method: %q, Target: %s", r.Service, r.Method, literal(r.Target))
	if len(r.Header) > 0 {
		b.WriteString(", Header: []Field{")
		for _, f := range r.Header {
			fmt.Fprintf(&b, "{%s, %s}, ", literal(f.Name), literal(f.Value))
		}
		b.WriteString("}")
	}
	if len(r.Body) > 0 {
		fmt.Fprintf(&b, ", Body: []byte(%s)", literal(string(r.Body)))
	}
	if r.Chunked {
		b.WriteString(", Chunked: true")
	}
	if r.Raw {
		b.WriteString(", Raw: true")
	}
	return b.String() + "}"
}

// literal writes long runs of one byte short, for people read it.
func literal(text string) string {
	const long = 64
	var parts []string
	for start, i := 0, 0; i < len(text); {
		run := i
		for run < len(text) && text[run] == text[i] {
			run++
		}
		if run-i >= long {
			if start < i {
				parts = append(parts, strconv.Quote(text[start:i]))
			}
			parts = append(parts, fmt.Sprintf("strings.Repeat(%q, %d)", text[i:i+1], run-i))
			start = run
		}
		if i = run; i == len(text) && start < i {
			parts = append(parts, strconv.Quote(text[start:]))
		}
	}
	if len(parts) == 0 {
		return `""`
	}
	return strings.Join(parts, " + ")
}
