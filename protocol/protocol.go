// Package protocol declares everything that crosses a process or enters the
// Raft log: subjects, messages, log entries, the HTTP API's types, and their
// greatest sizes. PROTOCOL.md draws the bytes; golden bytes and fuzz tests stand
// beside each decoder. Every message begins with Version and a Kind.
package protocol

import (
	"errors"
	"fmt"
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
	KindFragment  Kind = 12 // a piece of a message larger than NATS carries
	KindBlobGet   Kind = 13 // request: bytes of a blob
	KindBlobData  Kind = 14 // its reply
	KindReplicate Kind = 15 // leader -> coordinator, request: fetch and sync a blob
	KindReply     Kind = 16 // reply: done, or why not
	// KindCheckpoint, worker -> leader: how far a sub-job is.
	KindCheckpoint Kind = 17
	// KindProbe, leader -> worker: nothing but whether somebody listens.
	KindProbe Kind = 18
	// KindProgress, worker -> leader: the numbers of a sub-job, for people.
	KindProgress Kind = 19
	// KindChunk, leader -> worker: one piece of a version of a value.
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
