// Package rights says what each identity may do: which subjects of NATS it may publish and
// subscribe to, and which requests of the HTTP API it may make. PROTOCOL.md has the table of subjects,
// and docs/reference/http.md has the table of requests.
package rights

import (
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Role is what an identity is: a process of the cluster or a user.
type Role string

// The roles. A user is admin, submit or read. A request without an identity is anonymous.
const (
	Anonymous   Role = "anonymous"
	Read        Role = "read"
	Submit      Role = "submit"
	Admin       Role = "admin"
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
	Pool        Role = "pool"
	Serve       Role = "serve"
	Proxy       Role = "proxy" // it has no request of its own
)

// NATS is the subjects that a client of NATS may use. The zero value permits nothing.
type NATS struct {
	Publish, Subscribe []string
	// Answer is how long the client may answer a request that it has received, once, on the
	// subject that the request names. 0: it may not.
	Answer time.Duration
}

// OnNATS returns the subjects that an identity may use. client is the name that a client of NATS
// states when it connects. Only a member of a pool has its name from there: the name of the
// pool, a hyphen, and more. Users and model servers have no subjects: they use the HTTP API.
func OnNATS(s protocol.Subjects, role Role, name, client string) NATS {
	if role == Pool {
		if protocol.CheckID(name) != nil || !strings.HasPrefix(client, name+"-") {
			return NATS{}
		}
		name = client
	}
	if protocol.CheckID(name) != nil { // a wildcard, for example
		return NATS{}
	}
	const all = "*"
	switch role {
	case Coordinator:
		return NATS{
			Publish: []string{
				s.Lead(), s.Work(all), s.Answers(all) + ".>", s.Fetch(all) + protocol.PassedOn,
				s.CoordinatorBlobs(all), s.WorkerBlobs(all), s.Replicate(all), s.Inbox(all) + ".>",
			},
			Subscribe: []string{
				s.Heartbeats(all), s.AllResults(name, all), s.Fetch(all), s.Fetch(all) + protocol.PassedOn,
				s.CoordinatorBlobs(name), s.Replicate(name), s.Inbox(name) + ".>",
			},
		}
	case Worker, Pool:
		return NATS{
			Publish:   []string{s.Heartbeats(name), s.AllResults(all, name), s.Fetch(name)},
			Subscribe: []string{s.Lead(), s.Work(name), s.WorkerBlobs(name), s.Answers(name) + ".>"},
			Answer:    protocol.BlobAnswer,
		}
	}
	return NATS{}
}
