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
	// never refused for want of room, if any coordinator answers: others decide by the answer who leads
	Urgent
	Stream  // the answer is a stream of changes
	OwnOnly // users below admin may make it only about what they have made
	Changes // changes the state of the cluster
	ToFile  // the body goes to a file, so it takes no memory
	Page    // browsers send it; it is no part of the API, and makes requests of the API for its caller
)

type others = map[Role]Access

// Requests are the requests that a coordinator answers.
var Requests = []Request{
	{Pattern: "GET /healthz", Role: Anonymous, Kind: AnyAnswers | Urgent, Others: nil,
		Purpose: "returns 200 while the process runs"},
	{Pattern: "GET /readyz", Role: Read, Kind: AnyAnswers | Urgent, Others: others{Anonymous: Status, Coordinator: Full},
		Purpose: "returns 200 if the coordinator can serve and has all blobs, otherwise 503 with the reason as text. With " +
			"`?blobs=any`, missing blobs do not matter"},
	{Pattern: "GET /metrics", Role: Read, Kind: AnyAnswers | Urgent, Others: nil,
		Purpose: "returns the metrics for Prometheus ([METRICS.md](../../metrics/METRICS.md))"},
	{Pattern: "GET /v1/self", Role: Read, Kind: AnyAnswers | Urgent, Others: others{Coordinator: Full},
		Purpose: "describes the coordinator that answers: its cluster, its state in Raft, and its problem if it has one"},
	{Pattern: "GET /v1/openapi.json", Role: Read, Kind: AnyAnswers, Others: nil,
		Purpose: "describes these requests in the format OpenAPI 3.1 ([description](#a-description-for-programs))"},
	{Pattern: "GET /v1/cluster", Role: Read, Kind: AnyIfLocal | Urgent, Others: others{Coordinator: Full, Worker: Local,
		Pool: Local}, Purpose: "describes the cluster: leader, coordinators, workers and quarantined workers. " +
		"`?local=true` leaves the workers out and works without a leader; `&wait_ms=N` then waits for a leader, at most N " +
		"ms and at most 5 s"},
	{Pattern: "GET /v1/members", Role: Read, Kind: 0, Others: others{Coordinator: Full},
		Purpose: "lists the members and the state of each member"},
	{Pattern: "POST /v1/members", Role: Admin, Kind: Changes, Others: nil, Purpose: "adds a coordinator"},
	{Pattern: "DELETE /v1/members/{id}", Role: Admin, Kind: Changes, Others: nil, Purpose: "removes a coordinator"},
	{Pattern: "POST /v1/transfer", Role: Admin, Kind: Changes, Others: nil, Purpose: "transfers the leadership"},
	{Pattern: "POST /v1/workers/{worker}/trust", Role: Admin, Kind: Changes, Others: nil,
		Purpose: "trusts a quarantined worker again"},
	{Pattern: "GET /v1/datasets", Role: Read, Kind: 0, Others: nil, Purpose: "lists datasets ([lists](#lists))"},
	{Pattern: "POST /v1/datasets", Role: Submit, Kind: Changes, Others: nil,
		Purpose: "creates a dataset from a manifest. The blobs of the dataset must have been sent before. With `shared`, " +
			"all users may read it ([security.md](../security.md#private-and-shared))"},
	{Pattern: "POST /v1/datasets/check", Role: Submit, Kind: 0, Others: nil,
		Purpose: "lists the blobs of a dataset that the caller must send (`lacking`)"},
	{Pattern: "GET /v1/datasets/{name}", Role: Read, Kind: 0, Others: nil, Purpose: "returns a dataset with its manifest"},
	{Pattern: "POST /v1/datasets/{name}/share", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "lets all users read a dataset"},
	{Pattern: "DELETE /v1/datasets/{name}", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "deletes a dataset"},
	{Pattern: "GET /v1/blobs/{digest}", Role: Read, Kind: AnyAnswers, Others: nil,
		Purpose: "returns a blob that the caller may read. Status 404 also stands for a blob that the caller may not read"},
	{Pattern: "PUT /v1/blobs/{digest}", Role: Submit, Kind: ToFile, Others: nil, Purpose: "stores a blob"},
	{Pattern: "GET /v1/jobs", Role: Read, Kind: 0, Others: nil,
		Purpose: "lists jobs (`jobs`), their number (`total`), and the number of each state (`states`) ([lists](#lists)). " +
			"`?full=true` returns all keys"},
	{Pattern: "POST /v1/jobs", Role: Submit, Kind: Changes, Others: nil,
		Purpose: "submits a job, with the keys `token`, `spec`, `audit` and `shared`. Status 424: a blob that the spec " +
			"names must be sent first, perhaps again. With `?check=true` it changes nothing, and returns the job that it " +
			"would queue, or the job with this name and spec"},
	{Pattern: "GET /v1/jobs/{job}", Role: Read, Kind: 0, Others: nil, Purpose: "returns a job by number or name"},
	{Pattern: "GET /v1/jobs/{job}/changes", Role: Read, Kind: Stream, Others: nil,
		Purpose: "sends the job as a line of JSON at once and after each change, until the job ends " +
			"([streams](#streams-of-changes))"},
	{Pattern: "GET /v1/jobs/{job}/curve", Role: Read, Kind: 0, Others: nil,
		Purpose: "returns the learning curve of a job"},
	{Pattern: "GET /v1/jobs/{job}/runs", Role: Read, Kind: 0, Others: nil,
		Purpose: "returns one page of the results of an experiment's runs. `?from=N` and `?until=N` select runs by number; " +
			"`?records=true` adds learning curves and predictions"},
	{Pattern: "GET /v1/jobs/{job}/runs/states", Role: Read, Kind: 0, Others: nil,
		Purpose: "lists the runs that have ended, failed (with `error`), or were skipped because of a budget. `?from=N` " +
			"and `?until=N` select runs by number"},
	{Pattern: "POST /v1/jobs/{job}/cancel", Role: Submit, Kind: OwnOnly | Changes, Others: nil, Purpose: "cancels a job"},
	{Pattern: "POST /v1/jobs/{job}/pause", Role: Submit, Kind: OwnOnly | Changes, Others: nil, Purpose: "pauses a job"},
	{Pattern: "POST /v1/jobs/{job}/resume", Role: Submit, Kind: OwnOnly | Changes, Others: nil, Purpose: "resumes a job"},
	{Pattern: "POST /v1/jobs/{job}/share", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "lets all users read the models and predictions of a job"},
	{Pattern: "POST /v1/jobs/delete", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "deletes the given jobs if all of them have ended; otherwise none"},
	{Pattern: "POST /v1/jobs/prune", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "deletes the jobs that ended before a given age"},
	{Pattern: "GET /v1/experiments", Role: Read, Kind: 0, Others: nil,
		Purpose: "lists the experiments (`experiments`), how far they are, and their number (`total`) ([lists](#lists))"},
	{Pattern: "GET /v1/experiments/{name}", Role: Read, Kind: 0, Others: nil, Purpose: "returns an experiment by name"},
	{Pattern: "GET /v1/experiments/{name}/changes", Role: Read, Kind: Stream, Others: nil,
		Purpose: "sends the experiment as a line of JSON at once and after each change, until all of its jobs have ended. " +
			"`?runs=true` adds the runs that have ended ([streams](#streams-of-changes))"},
	{Pattern: "GET /v1/experiments/{name}/grid", Role: Read, Kind: 0, Others: nil,
		Purpose: "counts the runs of an experiment by method and dataset, with some of the failed runs. `?limit=N` returns " +
			"only N methods, and `?from=N` begins with method N, counted from 0"},
	{Pattern: "GET /v1/experiments/{name}/report", Role: Read, Kind: 0, Others: nil,
		Purpose: "returns the report of the runs that have ended. `?format=F` is table, md, csv, json, latex, html or " +
			"fragment ([formats](reports.md#formats)); `no_times`, `sample`, `all_tests` (true or false) and `level` are as " +
			"the flags of `coppice experiment report`. " +
			"An experiment of more than 200,000 runs (20,000 with recorded data) is refused"},
	{Pattern: "POST /v1/experiments/{name}/cancel", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "cancels the jobs of an experiment that have not ended"},
	{Pattern: "POST /v1/experiments/{name}/pause", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "pauses them"},
	{Pattern: "POST /v1/experiments/{name}/resume", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "lets them go on"},
	{Pattern: "POST /v1/experiments/{name}/retry", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "submits runs of an experiment again: failed runs and, unless `failed` is true, runs without a result. " +
			"The keys are `token` and `failed`"},
	{Pattern: "POST /v1/experiments/{name}/share", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "lets all users read the results of an experiment"},
	{Pattern: "DELETE /v1/experiments/{name}", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "deletes an experiment that has ended"},
	{Pattern: "POST /v1/experiments", Role: Submit, Kind: Changes, Others: nil,
		Purpose: "submits the new runs of a spec, see [below](#submit-an-experiment)"},
	{Pattern: "GET /v1/models", Role: Read, Kind: 0, Others: others{Serve: Full},
		Purpose: "lists the models, the newest last ([lists](#lists)). `?newest=N` lists only the last N"},
	{Pattern: "GET /v1/models/{name...}", Role: Read, Kind: 0, Others: others{Serve: Full},
		Purpose: "returns a model file. The name of a model is `JOB`, `JOB/FOLD` or `JOB/DIGEST`"},
	{Pattern: "DELETE /v1/models/{job...}", Role: Submit, Kind: OwnOnly | Changes, Others: nil,
		Purpose: "deletes the models of a job"},
	{Pattern: "GET /v1/backup", Role: Admin, Kind: 0, Others: nil, Purpose: "returns a backup of the cluster"},
	{Pattern: "GET /v1/tokens", Role: Admin, Kind: 0, Others: nil,
		Purpose: "lists the tokens of users, without their secrets"},
	{Pattern: "POST /v1/tokens", Role: Admin, Kind: Changes, Others: nil,
		Purpose: "makes a token valid, see [below](#tokens)"},
	{Pattern: "DELETE /v1/tokens/{id}", Role: Admin, Kind: Changes, Others: nil,
		Purpose: "revokes a token. Its open streams end within a second"},
	{Pattern: "GET /v1/audit", Role: Admin, Kind: 0, Others: nil,
		Purpose: "lists the newest [audit records](../security.md#audit-records), the newest first (sorted by `time`, then " +
			"by `number`). `?limit=N` (100, at most 10,000), `?since=UNIX_SECONDS`, `?caller=NAME`, `?refused=true` " +
			"and `?after=NUMBER` (records that follow this one) choose"},
	{Pattern: "POST /v1/audit", Role: "", Kind: Changes, Others: others{Coordinator: Full},
		Purpose: "keeps the refusals that another coordinator has counted"},
	{Pattern: "GET /v1/revocations", Role: Admin, Kind: 0, Others: nil, Purpose: "lists the revoked certificates"},
	{Pattern: "POST /v1/revocations", Role: Admin, Kind: Changes, Others: nil,
		Purpose: "revokes a certificate of a cluster with TLS. The keys are `serial`, and optionally " +
			"`identity` and `until`"},
	{Pattern: "GET /{$}", Role: Anonymous, Kind: AnyAnswers | Page, Purpose: "leads to the page"},
	{Pattern: "GET /ui", Role: Read, Kind: AnyAnswers | Page, Purpose: "shows the first view of the page"},
	{Pattern: "GET /ui/{view...}", Role: Read, Kind: AnyAnswers | Page, Purpose: "shows a view of the page"},
	{Pattern: "GET /ui/live", Role: Read, Kind: AnyAnswers | Page | Stream,
		Purpose: "sends the regions of the first view that change, as server-sent events"},
	{Pattern: "GET /ui/live/{view...}", Role: Read, Kind: AnyAnswers | Page | Stream,
		Purpose: "sends the regions of a view that change, as server-sent events"},
	{Pattern: "POST /ui/{action...}", Role: Read, Kind: AnyAnswers | Page,
		Purpose: "makes a change, as the request of the API that it stands for permits"},
	{Pattern: "GET /ui/login", Role: Anonymous, Kind: AnyAnswers | Page, Purpose: "asks for a token"},
	{Pattern: "POST /ui/login", Role: Anonymous, Kind: AnyAnswers | Page,
		Purpose: "exchanges a token for a cookie ([sessions](../security.md#sessions-of-browsers))"},
	{Pattern: "POST /ui/logout", Role: Anonymous, Kind: AnyAnswers | Page, Purpose: "removes the cookie"},
	{Pattern: "GET /ui/static/{hash}/{file}", Role: Anonymous, Kind: AnyAnswers | Page,
		Purpose: "returns the style sheet, the script or the icon"},
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

// Open reports whether callers without an identity may make a request. For OPTIONS, the request is GET of its path.
func Open(r *http.Request) bool {
	if r.Method == http.MethodOptions {
		other := *r
		other.Method = http.MethodGet
		r = &other
	}
	row := rowOf(r)
	return row != nil && (row.Role == Anonymous || row.Others[Anonymous] != None)
}

// OfPage reports whether a path is of the page, which browsers show.
func OfPage(path string) bool { return path == PagePath || strings.HasPrefix(path, PagePath+"/") }

// PagePath is the path of the page's first view. The other views are below it.
const PagePath = "/ui"

// rowOf finds the row of a request, or nil.
func rowOf(r *http.Request) *Request {
	_, pattern := routes.Handler(r)
	return byPattern[pattern]
}

// Is reports what a request is, as Requests says. A property that depends on the query is left out if the query
// does not have it.
func Is(r *http.Request) Kind {
	row := rowOf(r)
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
