package bus

import (
	"bytes"
	"errors"
	"strconv"
)

// errSaid ends the connection of a client that does not say what NATS clients say.
var errSaid = errors.New("the bytes are not the protocol of a NATS client")

const (
	// maxLine bounds a line of the protocol, but for its end. NATS' own bound is 4 KiB and
	// leaves out the command.
	maxLine = 4096 + 16
	// eachMessage is what a message takes besides its bytes while it waits in this process.
	eachMessage = 256
	// blanks are between the words of a line.
	blanks = " \t"
)

// said follows what a client says to its server: lines, and after a line that begins a
// message the bytes of that. It takes less than the server does, and understands what it
// takes in the same way, so that it knows which read lets the server deliver how much.
// The zero value is ready for use.
type said struct {
	line  []byte // the beginning of one that has no end yet
	bytes int    // of the message that is being said; 0: none is
	left  int    // of it, the end of its line included
}

// next takes the next bytes, and returns the bytes of the messages that end in them, each
// with its line and eachMessage.
func (s *said) next(p []byte) (ended int64, err error) {
	for len(p) > 0 {
		if s.bytes > 0 {
			n := min(s.left, len(p))
			p, s.left = p[n:], s.left-n
			if s.left == 0 {
				ended, s.bytes = ended+int64(s.bytes), 0
			}
			continue
		}
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		if len(s.line)+len(line) > maxLine {
			return ended, errSaid
		}
		p = rest
		if !whole {
			s.line = append(s.line, line...)
			continue
		}
		if len(s.line) > 0 {
			line = append(s.line, line...)
			s.line = nil
		}
		if err := s.begin(line); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// begin takes a line, and begins a message if that is what it says.
func (s *said) begin(line []byte) error {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if bytes.IndexByte(line, '\r') >= 0 {
		return errSaid // the server's understanding depends on how it came
	}
	command := line
	if i := bytes.IndexAny(line, blanks); i >= 0 {
		command = line[:i]
	}
	if !bytes.EqualFold(command, []byte("PUB")) && !bytes.EqualFold(command, []byte("HPUB")) {
		return nil
	}
	size := line[bytes.LastIndexAny(line, blanks)+1:]
	n, err := strconv.ParseUint(string(size), 10, 31)
	if err != nil {
		return errSaid
	}
	s.left = int(n) + len("\r\n")
	s.bytes = len(line) + s.left + eachMessage
	return nil
}
