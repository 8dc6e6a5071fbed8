// Package bus is Coppice's transport: a NATS server embedded in a coordinator,
// and connections to NATS that carry messages of any size, requests, and blobs
// pulled in chunks.
//
// NATS carries, Raft remembers: core NATS only, delivery at most once. A message
// may be lost whenever a connection is (Send says so when it knows); a process
// that needs an answer asks again. Nothing is buffered while there is no connection.
package bus

import (
	"errors"

	"github.com/coppice-ldl/coppice/protocol"
)

// Errors of this package; test with errors.Is.
var (
	// ErrOffline is returned by Send and Request while no server answers.
	ErrOffline = errors.New("not connected to NATS")
	// ErrNoAnswer is returned by Request when nobody serves its subject, or
	// nobody answers in time.
	ErrNoAnswer = errors.New("no answer came over NATS")
	// ErrNoBlob is returned by FetchBlob when no coordinator has the blob.
	ErrNoBlob = errors.New("no coordinator has the blob")
	// ErrNobody is wrapped, with ErrNoBlob, by the error of who is asked for a blob that it lacks
	// and knows that nobody else has either: see ServeBlobs.
	ErrNobody = errors.New("no other coordinator has the blob")
	// ErrUnreadable is returned by FetchBlob, with ErrNoBlob, when who has the blob cannot
	// read it just now.
	ErrUnreadable = errors.New("the blob exists, but cannot be read at the moment")
	// ErrBlob is returned by FetchBlob when the bytes are not those of the
	// digest, or not of the announced size.
	ErrBlob = errors.New("the bytes of the blob are wrong")
	// ErrTooLarge is returned by Request for a request above the server's
	// greatest payload: requests and their answers are not fragmented.
	ErrTooLarge = errors.New("the request is too large for NATS")
)

// DefaultPing is the interval of pings between clients and servers; a peer that
// misses MissedPings is taken for gone.
const DefaultPing = protocol.DefaultHeartbeat * 3 / 2

// pingsOut is the number of pings that may go unanswered, while nothing else comes either.
const pingsOut = protocol.MissedPings

// Traffic counts what a connection carries. Methods are called concurrently.
type Traffic interface {
	// Sent counts n bytes of payload published.
	Sent(n int)
	// Received counts n bytes of payload delivered.
	Received(n int)
	// Reconnected counts a connection that came back.
	Reconnected()
	// Disconnected counts a connection that was lost.
	Disconnected()
}

// uncounted is the Traffic of a connection without one.
type uncounted struct{}

func (uncounted) Sent(int)      {}
func (uncounted) Received(int)  {}
func (uncounted) Reconnected()  {}
func (uncounted) Disconnected() {}
