package load

import (
	"bytes"
	"fmt"
	"net/http"
)

// Request writes a whole request down, body and length included.
func Request(method, path string, header http.Header, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: framerun.test\r\n", method, path)
	header.Write(&b) // into memory: no error
	if body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
