// Package rights says what each identity may do: which subjects of NATS it may publish and
// subscribe to, and which requests of the HTTP API it may make. PROTOCOL.md has the table of subjects,
// and docs/reference/http.md has the table of requests.
package rights

import (
	"net/http"
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

// Request is a request of the HTTP API. The server, the client, the rights of roles and docs/reference/http.md
// have what it says from here.
type Request struct {
	Pattern string // method and path, as http.ServeMux reads them
	Role    Role   // the users' role with the fewest rights that may make the request; "": no user may
	Kind    Kind
	Others  map[Role]Access // what roles that do not include Role may do; nil: nothing
	Purpose string          // a text for docs/reference/http.md
}

// Kind is a set of properties of a request.
type Kind uint8

// The properties of requests. Without AnyAnswers and AnyIfLocal, a coordinator that does not lead forwards the
// request to the leader: only the leader can tell that its state has everything that was acknowledged.
const (
	AnyAnswers Kind = 1 << iota // any coordinator answers
	AnyIfLocal                  // any coordinator answers if the request has ?local=true
	Urgent                      // never refused for want of room, if any coordinator answers: others decide by the answer who leads
	Stream                      // the answer is a stream of changes
	OwnOnly                     // users below admin may make it only about what they have made
	Changes                     // changes the state of the cluster
	ToFile                      // the body goes to a file, so it takes no memory
)

type others = map[Role]Access

// Requests are the requests that a coordinator answers.
var Requests = []Request{
	{"GET /healthz", Anonymous, AnyAnswers | Urgent, nil, "returns 200 while the process runs"},
	{"GET /readyz", Read, AnyAnswers | Urgent, others{Anonymous: Status, Coordinator: Full}, "returns 200 if the coordinator can serve and has all blobs, otherwise 503 with the reason as text. With `?blobs=any`, missing blobs do not matter"},
	{"GET /metrics", Read, AnyAnswers | Urgent, nil, "returns the metrics for Prometheus ([METRICS.md](../../metrics/METRICS.md))"},
	{"GET /v1/self", Read, AnyAnswers | Urgent, others{Coordinator: Full}, "describes the coordinator that answers: its cluster, its state in Raft, and its problem if it has one"},
	{"GET /v1/cluster", Read, AnyIfLocal | Urgent, others{Coordinator: Full, Worker: Local, Pool: Local}, "describes the cluster: leader, coordinators, workers and quarantined workers. `?local=true` leaves the workers out and works without a leader; `&wait_ms=N` then waits for a leader, at most N ms and at most 5 s"},
	{"GET /v1/members", Read, 0, others{Coordinator: Full}, "lists the members and the state of each member"},
	{"POST /v1/members", Admin, Changes, nil, "adds a coordinator"},
	{"DELETE /v1/members/{id}", Admin, Changes, nil, "removes a coordinator"},
	{"POST /v1/transfer", Admin, Changes, nil, "transfers the leadership"},
	{"POST /v1/workers/{worker}/trust", Admin, Changes, nil, "trusts a quarantined worker again"},
	{"GET /v1/datasets", Read, 0, nil, "lists all datasets"},
	{"POST /v1/datasets", Submit, Changes, nil, "creates a dataset from a manifest. The blobs of the dataset must have been sent before. With `shared`, all users may read it ([security.md](../security.md#private-and-shared))"},
	{"POST /v1/datasets/check", Submit, 0, nil, "lists the blobs of a dataset that the caller must send (`lacking`)"},
	{"GET /v1/datasets/{name}", Read, 0, nil, "returns a dataset with its manifest"},
	{"POST /v1/datasets/{name}/share", Submit, OwnOnly | Changes, nil, "lets all users read a dataset"},
	{"DELETE /v1/datasets/{name}", Submit, OwnOnly | Changes, nil, "deletes a dataset"},
	{"GET /v1/blobs/{digest}", Read, AnyAnswers, nil, "returns a blob that the caller may read. Status 404 also stands for a blob that the caller may not read"},
	{"PUT /v1/blobs/{digest}", Submit, ToFile, nil, "stores a blob"},
	{"GET /v1/jobs", Read, 0, nil, "lists jobs (`jobs`) and their number (`total`). `?state=S,S`, `?sort=KEY`, `?limit=N` and `?after=JOB` are as the flags of `coppice job list`. If more jobs follow, `next` is the value of `after` for them. `?full=true` returns all keys"},
	{"POST /v1/jobs", Submit, Changes, nil, "submits a job, with the keys `token`, `spec`, `audit` and `shared`. Status 424: a blob that the spec names must be sent first, perhaps again"},
	{"GET /v1/jobs/{job}", Read, 0, nil, "returns a job by number or name"},
	{"GET /v1/jobs/{job}/changes", Read, Stream, nil, "sends the job as a line of JSON at once and after each change, until the job ends ([streams](#streams-of-changes))"},
	{"GET /v1/jobs/{job}/curve", Read, 0, nil, "returns the learning curve of a job"},
	{"GET /v1/jobs/{job}/runs", Read, 0, nil, "returns one page of the results of an experiment's runs. `?from=N` and `?until=N` select runs by number; `?records=true` adds learning curves and predictions"},
	{"GET /v1/jobs/{job}/runs/states", Read, 0, nil, "lists the runs that have ended, failed (with `error`), or were skipped because of a budget. `?from=N` and `?until=N` select runs by number"},
	{"POST /v1/jobs/{job}/cancel", Submit, OwnOnly | Changes, nil, "cancels a job"},
	{"POST /v1/jobs/{job}/pause", Submit, OwnOnly | Changes, nil, "pauses a job"},
	{"POST /v1/jobs/{job}/resume", Submit, OwnOnly | Changes, nil, "resumes a job"},
	{"POST /v1/jobs/{job}/share", Submit, OwnOnly | Changes, nil, "lets all users read the models and predictions of a job"},
	{"POST /v1/jobs/delete", Submit, OwnOnly | Changes, nil, "deletes the given jobs if all of them have ended; otherwise none"},
	{"POST /v1/jobs/prune", Submit, OwnOnly | Changes, nil, "deletes the jobs that ended before a given age"},
	{"GET /v1/experiments", Read, 0, nil, "lists the experiments and how far they are"},
	{"GET /v1/experiments/{name}", Read, 0, nil, "returns an experiment by name"},
	{"GET /v1/experiments/{name}/changes", Read, Stream, nil, "sends the experiment as a line of JSON at once and after each change, until all of its jobs have ended. `?runs=true` adds the runs that have ended ([streams](#streams-of-changes))"},
	{"GET /v1/experiments/{name}/report", Read, 0, nil, "returns the report of the runs that have ended. `?format=F` is table, md, csv, json, latex or html; `no_times`, `sample`, `all_tests` (true or false) and `level` are as the flags of `coppice experiment report`. An experiment of more than 200,000 runs (20,000 with recorded data) is refused"},
	{"POST /v1/experiments/{name}/cancel", Submit, OwnOnly | Changes, nil, "cancels the jobs of an experiment that have not ended"},
	{"POST /v1/experiments/{name}/pause", Submit, OwnOnly | Changes, nil, "pauses them"},
	{"POST /v1/experiments/{name}/resume", Submit, OwnOnly | Changes, nil, "lets them go on"},
	{"POST /v1/experiments/{name}/retry", Submit, OwnOnly | Changes, nil, "submits runs of an experiment again: failed runs and, unless `failed` is true, runs without a result. The keys are `token` and `failed`"},
	{"POST /v1/experiments/{name}/share", Submit, OwnOnly | Changes, nil, "lets all users read the results of an experiment"},
	{"DELETE /v1/experiments/{name}", Submit, OwnOnly | Changes, nil, "deletes an experiment that has ended"},
	{"POST /v1/experiments", Submit, Changes, nil, "submits the new runs of a spec, see [below](#submit-an-experiment)"},
	{"GET /v1/models", Read, 0, others{Serve: Full}, "lists the models, the newest last. `?newest=N` lists only the last N"},
	{"GET /v1/models/{name...}", Read, 0, others{Serve: Full}, "returns a model file. The name of a model is `JOB`, `JOB/FOLD` or `JOB/DIGEST`"},
	{"DELETE /v1/models/{job...}", Submit, OwnOnly | Changes, nil, "deletes the models of a job"},
	{"GET /v1/backup", Admin, 0, nil, "returns a backup of the cluster"},
	{"GET /v1/tokens", Admin, 0, nil, "lists the tokens of users, without their secrets"},
	{"POST /v1/tokens", Admin, Changes, nil, "makes a token valid, see [below](#tokens)"},
	{"DELETE /v1/tokens/{id}", Admin, Changes, nil, "revokes a token. Its open streams end within a second"},
	{"GET /v1/audit", Admin, 0, nil, "lists the newest [audit records](../security.md#audit-records), the newest first (sorted by `time`, then by `number`). `?limit=N` (100, at most 10,000), `?since=UNIX_SECONDS`, `?caller=NAME` and `?refused=true` choose"},
	{"POST /v1/audit", "", Changes, others{Coordinator: Full}, "keeps the refusals that another coordinator has counted"},
	{"GET /v1/revocations", Admin, 0, nil, "lists the revoked certificates"},
	{"POST /v1/revocations", Admin, Changes, nil, "revokes a certificate, unless the cluster is in the clear. The keys are `serial`, and optionally `identity` and `until`"},
}

// byPattern finds a row of Requests.
var byPattern = func() map[string]*Request {
	all := make(map[string]*Request)
	for i := range Requests {
		all[Requests[i].Pattern] = &Requests[i]
	}
	return all
}()

// routes finds the pattern of a request. Its handler is never called.
var routes = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range Requests {
		mux.HandleFunc(r.Pattern, http.NotFound)
	}
	return mux
}()

// Is reports what a request is, as Requests says. A property that depends on the query is left out if the query
// does not have it.
func Is(r *http.Request) Kind {
	_, pattern := routes.Handler(r)
	row := byPattern[pattern]
	if row == nil {
		return 0
	}
	kind := row.Kind
	if kind&AnyIfLocal != 0 && r.URL.Query().Get("local") != "true" {
		kind &^= AnyIfLocal | Urgent
	}
	if r.Method == http.MethodHead {
		kind &^= Stream
	}
	if r.URL.Query().Get("check") == "true" {
		kind &^= Changes
	}
	return kind
}

// OnHTTP returns how far a role may use a request of the HTTP API. route is a path as the server
// registers it, such as /v1/jobs/{job}. A request that a coordinator or a proxy forwards has the rights
// of its caller.
func OnHTTP(role Role, method, route string) Access {
	r := byPattern[method+" "+route]
	if r == nil {
		return None
	}
	if r.Role != "" && slices.Index(users, role) >= slices.Index(users, r.Role) || r.Role == Anonymous {
		if r.Kind&OwnOnly != 0 && role != Admin {
			return Own
		}
		return Full
	}
	return max(r.Others[role], r.Others[Anonymous])
}

// Least returns the role of users with the fewest rights that may make a request of the HTTP
// API, or an empty text if only processes may make it.
func Least(method, route string) Role {
	if r := byPattern[method+" "+route]; r != nil {
		return r.Role
	}
	return ""
}

// Users are the roles that a user may have.
var Users = users[1:]

// users are the roles of users. Each includes the roles before it, and every role includes the first.
var users = []Role{Anonymous, Read, Submit, Admin}
