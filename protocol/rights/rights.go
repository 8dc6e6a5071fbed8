// Package rights says what each identity may do: which subjects of NATS it may publish and
// subscribe to, and which requests of the HTTP API it may make. PROTOCOL.md has the tables.
package rights

import (
	"slices"
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

// Access is how far a role may use a request of the HTTP API.
type Access int

// The kinds of access.
const (
	None   Access = iota
	Status        // only the status of the answer, without its body
	Local         // only with ?local=true
	Own           // only for jobs, experiments and datasets that the caller has made
	Full
)

// OnHTTP returns how far a role may use a request of the HTTP API. route is a path as the server
// registers it, such as /v1/jobs/{job}. A request that a coordinator or a proxy forwards has the rights
// of its caller.
func OnHTTP(role Role, method, route string) Access {
	includes := users[:max(0, slices.Index(users, role))+1]
	access := None
	for _, r := range requests {
		if (r.role == role || slices.Contains(includes, r.role)) && slices.Contains(r.list, method+" "+route) {
			access = max(access, r.access)
		}
	}
	return access
}

// Least returns the role of users with the fewest rights that may make a request of the HTTP
// API, or an empty text if only processes may make it.
func Least(method, route string) Role {
	for _, role := range users {
		if access := OnHTTP(role, method, route); access == Full || access == Own {
			return role
		}
	}
	return ""
}

// Users are the roles that a user may have.
var Users = users[1:]

// users are the roles of users. Each includes the roles before it, and every role includes the first.
var users = []Role{Anonymous, Read, Submit, Admin}

// requests are the requests of the HTTP API. Roles have also the requests of the roles that they include.
var requests = []struct {
	role   Role
	access Access
	list   []string
}{
	{Anonymous, Full, []string{"GET /healthz"}},
	{Anonymous, Status, []string{"GET /readyz"}},
	{Read, Full, []string{
		"GET /readyz", "GET /metrics", "GET /v1/self", "GET /v1/cluster", "GET /v1/members",
		"GET /v1/datasets", "GET /v1/datasets/{name}",
		"GET /v1/jobs", "GET /v1/jobs/{job}", "GET /v1/jobs/{job}/changes", "GET /v1/jobs/{job}/curve",
		"GET /v1/jobs/{job}/runs", "GET /v1/jobs/{job}/runs/states",
		"GET /v1/experiments", "GET /v1/experiments/{name}", "GET /v1/experiments/{name}/changes",
		"GET /v1/experiments/{name}/report",
		"GET /v1/models", "GET /v1/models/{name...}", "GET /v1/blobs/{digest}",
	}},
	{Submit, Full, []string{
		"PUT /v1/blobs/{digest}", "POST /v1/datasets", "POST /v1/datasets/check",
		"POST /v1/jobs", "POST /v1/experiments",
	}},
	{Submit, Own, changes},
	{Admin, Full, changes},
	{Admin, Full, []string{
		"POST /v1/members", "DELETE /v1/members/{id}", "POST /v1/transfer", "POST /v1/workers/{worker}/trust",
		"GET /v1/backup", "GET /v1/audit", "GET /v1/revocations", "POST /v1/revocations", "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/{id}",
	}},
	{Coordinator, Full, []string{"GET /readyz", "GET /v1/self", "GET /v1/cluster", "GET /v1/members", "POST /v1/audit"}},
	{Worker, Local, []string{"GET /v1/cluster"}},
	{Pool, Local, []string{"GET /v1/cluster"}},
	{Serve, Full, []string{"GET /v1/models", "GET /v1/models/{name...}"}},
}

// changes are the requests that change or delete something that has an owner.
var changes = []string{
	"POST /v1/jobs/{job}/cancel", "POST /v1/jobs/{job}/pause", "POST /v1/jobs/{job}/resume", "POST /v1/jobs/{job}/share",
	"POST /v1/jobs/delete", "POST /v1/jobs/prune",
	"POST /v1/experiments/{name}/cancel", "POST /v1/experiments/{name}/pause", "POST /v1/experiments/{name}/resume",
	"POST /v1/experiments/{name}/retry", "POST /v1/experiments/{name}/share", "DELETE /v1/experiments/{name}",
	"DELETE /v1/datasets/{name}", "POST /v1/datasets/{name}/share", "DELETE /v1/models/{job...}",
}
