package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// sizeLimit is what one message, or all messages of a batch together, may
// weigh in bytes: body plus attributes.
const sizeLimit = 1 << 20

// Message is one message as the server knows it.
type Message struct {
	Queue      string
	ID         string
	Body       string
	GroupID    string // the tenant of a fair queue; empty when none was told
	Attributes map[string]Attribute
	SentAt     time.Time
	// VisibleAt is when it may be received, for the first time or again.
	VisibleAt time.Time
	// Receives counts deliveries so far.
	Receives int
}

// Attribute is a message attribute: a value and its type, String, Number or
// Binary, optionally followed by a dot and a label of the sender's.
type Attribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

// draft is a message as its sender words it.
type draft struct {
	Body             string               `json:"MessageBody"`
	GroupID          string               `json:"MessageGroupId"`
	DelaySeconds     *int                 `json:"DelaySeconds"`
	Attributes       map[string]Attribute `json:"MessageAttributes"`
	SystemAttributes map[string]Attribute `json:"MessageSystemAttributes"`
}

// size is in bytes, counted as SQS bills it.
func (d draft) size() int {
	n := len(d.Body)
	for name, a := range d.Attributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	return n
}

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_\-.]{1,256}$`)
	groupID       = regexp.MustCompile("^[A-Za-z0-9!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]{0,128}$")
)

// check refuses what SQS refuses of a message, whatever the queue.
func (d draft) check() error {
	switch {
	case d.Body == "":
		return refuse("MissingParameter", "The request must contain the parameter MessageBody.")
	case !legible(d.Body):
		return refuse("InvalidMessageContents", "Invalid binary character was found in the message body; the set of allowed characters is #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD] | [#x10000 to #x10FFFF].")
	case d.DelaySeconds != nil && (*d.DelaySeconds < 0 || *d.DelaySeconds > 900):
		return invalid("DelaySeconds", *d.DelaySeconds, "DelaySeconds must be >= 0 and <= 900.")
	case !groupID.MatchString(d.GroupID):
		return invalid("MessageGroupId", d.GroupID, "MessageGroupId can only include alphanumeric and punctuation characters, 1 to 128 in length.")
	case len(d.Attributes) > 10:
		return refuse("InvalidParameterValue", "Number of message attributes [%d] exceeds the allowed maximum [10].", len(d.Attributes))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if err := d.Attributes[name].check(name); err != nil {
			return err
		}
	}
	for name := range d.SystemAttributes {
		if name != "AWSTraceHeader" {
			return invalid("MessageSystemAttributes", name, "Only AWSTraceHeader may be sent.")
		}
	}
	return nil
}

func (a Attribute) check(name string) error {
	lower := strings.ToLower(name)
	if !attributeName.MatchString(name) || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
		return refuse("InvalidParameterValue", "The message attribute name %q is invalid.", name)
	}
	empty := a.StringValue == ""
	kind, _, _ := strings.Cut(a.DataType, ".")
	switch kind {
	case "String":
	case "Number":
		if _, err := strconv.ParseFloat(a.StringValue, 64); err != nil && !empty {
			return refuse("InvalidParameterValue", "Can't cast the value of message (user) attribute '%s' to a number.", name)
		}
	case "Binary":
		empty = len(a.BinaryValue) == 0
	default:
		return refuse("InvalidParameterValue", "The message (user) attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", name)
	}
	if empty {
		return refuse("InvalidParameterValue", "The message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, a.DataType)
	}
	if !legible(a.StringValue) {
		return refuse("InvalidParameterValue", "Invalid binary character was found in the message attribute '%s'.", name)
	}
	return nil
}

// legible tells whether XML 1.0 could hold the text: SQS was an XML service
// and still refuses every other character.
func legible(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool {
		return c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xFFFE || c == 0xFFFF
	})
}

func digest(body string) string {
	sum := md5.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// digestAttributes follows the SQS developer guide: by name, each of name,
// type and value with its length in front, the value also with a byte for
// how it travels. Without attributes there is no digest.
func digestAttributes(attributes map[string]Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	part := func(s string) { b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		part(name)
		part(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			b = append(b, 2)
			part(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			part(a.StringValue)
		}
	}
	return digest(string(b))
}
