// Package protocol declares everything that crosses a process or enters the
// Raft log: subjects, messages, log entries, the HTTP API's types, and their
// greatest sizes. PROTOCOL.md draws the bytes; golden bytes and fuzz tests stand
// beside each decoder. Every message begins with Version and a Kind.
package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"
)

// Version is the version of the wire and log formats. Processes of different
// versions refuse each other.
const Version = 3

// The bounds of what crosses a wire; a decoder refuses what exceeds them.
const (
	MaxMessage        = 1 << 30   // a whole message, fragments put together
	MaxTasks          = 1 << 20   // tasks of a round
	MaxVars           = 64        // values that a round reads
	MaxText           = 64 << 10  // an error text
	MaxJSON           = 16 << 20  // a JSON body
	MaxHeartbeatBytes = 4 << 20   // a worker's heartbeat: some 60,000 digests of shards
	BlobChunk         = 256 << 10 // bytes of a blob in one reply
	CommitChunk       = 512<<10 - 4096 - MaxCurve
	MaxProgress       = 3 << 10  // the JSON of a job's progress
	MaxCurve          = 20 << 10 // an encoded learning curve
	MaxRaftState      = 64 << 20 // trainer state beyond this is a blob
)

// Kind is the second byte of every message.
type Kind uint8

// The kinds of messages.
const (
	KindHeartbeat Kind = 1  // worker -> coordinators: I am alive, and what I hold
	KindLead      Kind = 2  // leader -> all: who leads, and since which epoch
	KindSetup     Kind = 3  // leader -> worker: a job and its dataset
	KindValue     Kind = 4  // leader -> worker: one version of a value
	KindRun       Kind = 5  // leader -> worker: compute these tasks
	KindPartial   Kind = 6  // worker -> leader: a node of the reduction tree
	KindResult    Kind = 7  // worker -> leader: the bytes of a collected task
	KindNeed      Kind = 8  // worker -> leader: I lack the job or values for a round
	KindFail      Kind = 9  // worker -> leader: a task cannot be computed
	KindForget    Kind = 10 // leader -> worker: drop what you keep of a job
	KindHold      Kind = 11 // leader -> worker: fetch these shards, as a standby
	KindFragment  Kind = 12 // a part of a message larger than NATS carries
	KindBlobGet   Kind = 13 // request: bytes of a blob
	KindBlobData  Kind = 14 // its reply
	KindReplicate Kind = 15 // leader -> coordinator, request: fetch and sync a blob
	KindReply     Kind = 16 // reply: done, or why not
	// KindCheckpoint, worker -> leader: how far a sub-job is.
	KindCheckpoint Kind = 17
	// KindProbe, leader -> worker: it only shows whether somebody listens.
	KindProbe Kind = 18
	// KindProgress, worker -> leader: the numbers of a sub-job, for people.
	KindProgress Kind = 19
	// KindChunk, leader -> worker: one chunk of a version of a value.
	KindChunk Kind = 20
	// KindBundle, leader -> worker: messages of the kinds above in one.
	KindBundle Kind = 21
)

// ErrMessage is wrapped by every error about the bytes of a message.
var ErrMessage = errors.New("protocol: the message is damaged")

// KindOf returns a message's kind after checking its version.
func KindOf(b []byte) (Kind, error) {
	if len(b) < 2 {
		return 0, fmt.Errorf("%w: it has only %d bytes", ErrMessage, len(b))
	}
	if b[0] != Version {
		return 0, fmt.Errorf("%w: it has protocol version %d, this process has version %d", ErrMessage, b[0], Version)
	}
	return Kind(b[1]), nil
}

var le = binary.LittleEndian

// coder reads or appends the fields of a message, so that one list of fields describes both
// directions. After an error it reads zeros. What it reads shares the memory of the message.
type coder struct {
	b     []byte // with what was appended, or what has not been read
	reads bool
	err   error // of a coder that reads
}

// begin codes what every message begins with.
func (c *coder) begin(k Kind) {
	if !c.reads {
		c.b = append(c.b, Version, byte(k))
		return
	}
	got, err := KindOf(c.b)
	if err == nil && got != k {
		err = fmt.Errorf("%w: it has kind %d, want kind %d", ErrMessage, got, k)
	}
	if err != nil {
		c.b, c.err = nil, err
		return
	}
	c.b = c.b[2:]
}

// fail sets the error of a coder that reads, if there is none yet.
func (c *coder) fail(format string, args ...any) {
	if c.reads && c.err == nil {
		c.b, c.err = nil, fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
	}
}

// end returns the first error of a coder that reads. It is an error if bytes are left.
func (c *coder) end() error {
	if len(c.b) > 0 {
		c.fail("%d bytes follow the end of the message", len(c.b))
	}
	return c.err
}

// take reads the next n bytes. It returns nil after an error.
func (c *coder) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.short(n)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

// short fails, since fewer than n bytes are left.
func (c *coder) short(n uint64) {
	c.fail("%d bytes are needed, but only %d are left", n, len(c.b))
}

// numbers codes numbers, each in as many bytes as its type has.
func numbers[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, all ...*T) {
	for _, v := range all {
		n := uint64(*v)
		if !c.reads {
			switch unsafe.Sizeof(*v) {
			case 1:
				c.b = append(c.b, byte(n))
			case 2:
				c.b = le.AppendUint16(c.b, uint16(n))
			case 4:
				c.b = le.AppendUint32(c.b, uint32(n))
			default:
				c.b = le.AppendUint64(c.b, n)
			}
			continue
		}
		switch b := c.take(uint64(unsafe.Sizeof(*v))); len(b) {
		case 0:
			n = 0
		case 1:
			n = uint64(b[0])
		case 2:
			n = uint64(le.Uint16(b))
		case 4:
			n = uint64(le.Uint32(b))
		default:
			n = le.Uint64(b)
		}
		*v = T(n)
	}
}

// count codes a number in four bytes. To read more than limit is an error.
func count[T ~int | ~uint32](c *coder, v *T, limit uint32) {
	n := uint32(*v)
	if numbers(c, &n); !c.reads {
		return
	}
	if n > limit {
		c.fail("want a count of at most %[2]d, got %[1]d", n, limit)
		n = 0
	}
	*v = T(n)
}

// flag codes a byte that is 0 or 1.
func (c *coder) flag(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	if numbers(c, &b); !c.reads {
		return
	}
	if b > 1 {
		c.fail("want a flag of 0 or 1, got %d", b)
	}
	*v = b == 1
}

// text codes a text behind its length. A field that mostly holds what it held before costs no allocation.
func (c *coder) text(v *string, limit uint32) {
	n := len(*v)
	if !c.reads {
		c.b = append(le.AppendUint32(c.b, uint32(n)), *v...)
		return
	}
	count(c, &n, limit)
	if b := c.take(uint64(n)); string(b) != *v {
		*v = string(b)
	}
}

// bytes codes bytes behind their length.
func (c *coder) bytes(v *[]byte) {
	if !c.reads {
		c.b = append(le.AppendUint64(c.b, uint64(len(*v))), *v...)
		return
	}
	var n uint64
	numbers(c, &n)
	*v = c.take(n)
}

// appendJSON appends a message with a body of JSON.
func appendJSON(dst []byte, k Kind, body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("protocol: a message does not marshal: %v", err))
	}
	c := coder{b: dst}
	c.begin(k)
	return append(c.b, b...)
}

// readJSON reads a message with a body of JSON.
func readJSON(b []byte, k Kind, body any) error {
	c := coder{b: b, reads: true}
	c.begin(k)
	if len(c.b) > MaxJSON {
		c.fail("the JSON has %d bytes, want at most %d", len(c.b), MaxJSON)
	}
	if c.err != nil {
		return c.err
	}
	if err := json.Unmarshal(c.b, body); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}
