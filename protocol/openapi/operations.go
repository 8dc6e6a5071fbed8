package openapi

import (
	"net/http"
	"slices"
	"sync"

	data "github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// The media types of bodies.
const (
	mediaJSON  = "application/json"
	mediaLines = "application/jsonl"
	mediaBytes = "application/octet-stream"
	mediaText  = "text/plain"
)

// operation is what the description says of a request beyond package rights.
type operation struct {
	pattern  string
	id       string
	params   []protocol.Param
	in       any      // the value of a JSON body; nil: no body
	optional []string // keys of in that a request may leave out, though their type writes them always
	bytes    bool     // true if the body is bytes
	out      any      // the value of a response in JSON; nil: see medias
	medias   []string // of the response; none: JSON
	linked   bool     // true if the header Link says where a list goes on
	ranges   bool     // true if the response has an ETag and ranges
	statuses []int    // of errors beyond statusesOf
	example  Example
}

// media lists the media types of the response.
func (o *operation) media() []string {
	if o.medias == nil {
		return []string{mediaJSON}
	}
	return o.medias
}

// Example is a request that works if the examples before it were sent.
type Example struct {
	Pattern string
	Path    map[string]string // parameters of the path
	Query   map[string]any    // parameters of the query
	Body    any               // in JSON; a []byte is sent as it is
	// Refused lists statuses of errors that the example may be answered with instead of success: it is about something
	// that a small cluster does not have.
	Refused []int
}

// find returns the operation of a pattern of package rights.
func find(pattern string) *operation {
	all := operations()
	for i := range all {
		if all[i].pattern == pattern {
			return &all[i]
		}
	}
	panic("openapi: the request " + pattern + " has no description")
}

// exampleData returns the dataset of the examples, and its blobs.
func exampleData() (protocol.DatasetPut, [][]byte) {
	m, shards, err := importer.Build(generate.Artificial(16, 1), importer.Options{})
	if err != nil {
		panic(err) // TestDocument finds it
	}
	put := protocol.DatasetPut{Name: "example", Manifest: m, Shared: true}
	var encoded [][]byte
	for _, shard := range shards {
		encoded = append(encoded, data.EncodeShard(shard, nil))
	}
	return put, encoded
}

// Examples returns an example of each request, in an order in which they work. They are for an empty cluster.
func Examples() (list []Example) {
	_, shards := exampleData()
	for _, o := range operations() {
		example := o.example
		example.Pattern = o.pattern
		if !o.bytes {
			list = append(list, example)
			continue
		}
		for _, shard := range shards {
			example.Path, example.Body = path{"digest": blobs.Sum(shard)}, shard
			list = append(list, example)
		}
	}
	return list
}

type (
	query = map[string]any
	path  = map[string]string
)

var (
	dataset, job, study = path{"name": "example"}, path{"job": "example"}, path{"name": "study"}
	empty               = struct{}{}
)

const (
	conflict, lacks, full, refused, missing = http.StatusConflict, protocol.StatusSendBlob, http.StatusInsufficientStorage,
		http.StatusBadRequest, http.StatusNotFound
	exampleToken = "0123456789abcdef"
)

// operations describes the requests of package rights, in the order of their examples. It is made once, if somebody
// asks for it.
var operations = sync.OnceValue(func() []operation {
	return slices.Concat(dataOperations(), jobOperations(), clusterOperations())
})

// dataOperations describes the requests about processes, datasets and blobs.
func dataOperations() []operation {
	put, shards := exampleData()
	digest := path{"digest": blobs.Sum(shards[0])}
	return []operation{
		{pattern: "GET /healthz", id: "getHealth", medias: []string{mediaText}},
		{pattern: "GET /readyz", id: "getReadiness", medias: []string{mediaText}, params: protocol.ReadyParams(),
			example: Example{Query: query{"blobs": "any"}}},
		{pattern: "GET /metrics", id: "getMetrics", medias: []string{mediaText}},
		{pattern: "GET /v1/self", id: "getSelf", out: protocol.Self{}},
		{pattern: "GET /v1/openapi.json", id: "getDescription"},
		{pattern: "GET /v1/cluster", id: "getCluster", params: protocol.ClusterParams(), out: protocol.Cluster{},
			example: Example{Query: query{"local": true, "wait_ms": 1000}}},
		{pattern: "GET /v1/members", id: "listMembers", out: protocol.Members{}},
		{pattern: "POST /v1/datasets/check", id: "checkDataset", in: protocol.DatasetPut{}, out: protocol.DatasetCheck{},
			statuses: []int{conflict, full}, example: Example{Body: put}},
		{pattern: "PUT /v1/blobs/{digest}", id: "putBlob", bytes: true, out: empty, statuses: []int{full},
			example: Example{Path: digest, Body: shards[0]}},
		{pattern: "POST /v1/datasets", id: "createDataset", in: protocol.DatasetPut{}, out: protocol.Dataset{},
			statuses: []int{lacks, full}, example: Example{Body: put}},
		{pattern: "GET /v1/blobs/{digest}", id: "getBlob", medias: []string{mediaBytes}, ranges: true,
			example: Example{Path: digest}},
		{pattern: "GET /v1/datasets", id: "listDatasets", params: new(protocol.DatasetQuery).Params(), linked: true,
			out: []protocol.Dataset{}, statuses: []int{missing},
			example: Example{Query: query{"name": "exam*", "sort": "-time", "limit": 10}}},
		{pattern: "GET /v1/datasets/{name}", id: "getDataset", out: protocol.Dataset{}, example: Example{Path: dataset}},
		{pattern: "POST /v1/datasets/{name}/share", id: "shareDataset", out: protocol.Dataset{},
			example: Example{Path: dataset}},
	}
}

// jobOperations describes the requests about jobs, models and experiments.
func jobOperations() []operation {
	return []operation{
		{pattern: "POST /v1/jobs", id: "submitJob", params: protocol.Flag("check", new(bool)),
			in: protocol.SubmitRequest{}, out: protocol.JobInfo{},
			statuses: []int{lacks}, example: Example{Query: query{"check": false}, Body: protocol.SubmitRequest{
				Token: "a text that the client draws", Spec: protocol.Spec{Algorithm: "aa-knn", Dataset: "example",
					Name: "example", TestFraction: 0.25, Set: map[string]string{"k": "2"}}}}},
		{pattern: "POST /v1/jobs/{job}/pause", id: "pauseJob", out: protocol.JobInfo{},
			example: Example{Path: job, Refused: []int{conflict}}},
		{pattern: "POST /v1/jobs/{job}/resume", id: "resumeJob", out: protocol.JobInfo{},
			example: Example{Path: job, Refused: []int{conflict}}},
		{pattern: "GET /v1/jobs/{job}/changes", id: "watchJob", out: protocol.JobInfo{}, medias: []string{mediaLines},
			example: Example{Path: job}},
		{pattern: "GET /v1/jobs", id: "listJobs", params: new(protocol.JobQuery).Params(), out: protocol.JobList{},
			statuses: []int{missing}, example: Example{Query: query{"state": []protocol.JobState{protocol.Done},
				"algorithm": "aa-knn", "sort": "-submitted", "limit": 10}}},
		{pattern: "GET /v1/jobs/{job}", id: "getJob", out: protocol.JobInfo{}, example: Example{Path: job}},
		{pattern: "GET /v1/jobs/{job}/curve", id: "getJobCurve", out: protocol.JobCurve{}, example: Example{Path: job}},
		{pattern: "POST /v1/jobs/{job}/share", id: "shareJob", out: protocol.JobInfo{}, example: Example{Path: job}},
		{pattern: "POST /v1/jobs/{job}/cancel", id: "cancelJob", out: protocol.JobInfo{},
			example: Example{Path: job, Refused: []int{conflict}}},
		{pattern: "GET /v1/models", id: "listModels", params: new(protocol.ModelQuery).Params(), linked: true,
			out: []protocol.ModelInfo{}, statuses: []int{missing},
			example: Example{Query: query{"algorithm": "aa-knn", "dataset": "example"}}},
		{pattern: "GET /v1/models/{name...}", id: "getModel", medias: []string{mediaBytes}, ranges: true,
			example: Example{Path: dataset}},
		{pattern: "POST /v1/experiments", id: "submitExperiment", params: protocol.Flag("check", new(bool)),
			in: protocol.ExperimentRequest{}, optional: []string{"file"}, out: protocol.ExperimentPlan{},
			statuses: []int{lacks, full}, example: Example{Query: query{"check": false}, Body: protocol.ExperimentRequest{
				Token: "another text", File: "study.yaml",
				Spec: "name: study\ndatasets: [{dataset: example}]\nfolds: 2\nmethods: [aa-knn, sa-bfgs]\n"}}},
		{pattern: "GET /v1/experiments/{name}/changes", id: "watchExperiment", params: protocol.Flag("runs", new(bool)),
			out: protocol.ExperimentLine{}, medias: []string{mediaLines}, example: Example{Path: study,
				Query: query{"runs": true}}},
		{pattern: "GET /v1/experiments", id: "listExperiments", params: new(protocol.ExperimentQuery).Params(),
			out: protocol.ExperimentList{}, statuses: []int{missing}, example: Example{Query: query{"name": "study",
				"state": []protocol.JobState{protocol.Done}}}},
		{pattern: "GET /v1/experiments/{name}", id: "getExperiment", out: protocol.Experiment{},
			example: Example{Path: study}},
		{pattern: "GET /v1/experiments/{name}/grid", id: "getExperimentGrid", params: new(protocol.GridQuery).Params(),
			out: protocol.ExperimentGrid{}, example: Example{Path: study, Query: query{"from": 1, "limit": 10}}},
		{pattern: "GET /v1/experiments/{name}/report", id: "getExperimentReport",
			params: new(protocol.ReportQuery).Params(), medias: []string{mediaJSON, mediaText, "text/markdown", "text/csv",
				"application/x-tex", "text/html"}, example: Example{Path: study, Query: query{"format": "md", "no_times": true}}},
		{pattern: "GET /v1/jobs/{job}/runs", id: "listRuns", params: new(protocol.RunQuery).Params(),
			out: protocol.JobCells{}, example: Example{Path: path{"job": "study.example"}, Query: query{"from": 0, "until": 2}}},
		{pattern: "GET /v1/jobs/{job}/runs/states", id: "listRunStates", params: new(protocol.RunQuery).Params(),
			out: protocol.JobCellStates{}, example: Example{Path: path{"job": "study.example"}, Query: query{"from": 0}}},
		{pattern: "POST /v1/experiments/{name}/cancel", id: "cancelExperiment", out: protocol.ExperimentChange{},
			example: Example{Path: study}},
		{pattern: "POST /v1/experiments/{name}/pause", id: "pauseExperiment", out: protocol.ExperimentChange{},
			example: Example{Path: study}},
		{pattern: "POST /v1/experiments/{name}/resume", id: "resumeExperiment", out: protocol.ExperimentChange{},
			example: Example{Path: study}},
		{pattern: "POST /v1/experiments/{name}/retry", id: "retryExperiment", in: protocol.ExperimentRetry{},
			out: protocol.ExperimentPlan{}, statuses: []int{full}, example: Example{Path: study, Body: protocol.ExperimentRetry{
				Token: "a third text"}}},
		{pattern: "POST /v1/experiments/{name}/share", id: "shareExperiment", out: protocol.ExperimentChange{},
			example: Example{Path: study}},
		{pattern: "DELETE /v1/experiments/{name}", id: "deleteExperiment", out: protocol.Deletion{},
			example: Example{Path: study}},
	}
}

// clusterOperations describes the requests that delete, and the requests about the cluster and its callers.
func clusterOperations() []operation {
	return []operation{
		{pattern: "DELETE /v1/models/{job...}", id: "deleteModel", out: protocol.JobInfo{}, example: Example{Path: dataset}},
		{pattern: "POST /v1/jobs/delete", id: "deleteJobs", in: protocol.DeleteRequest{}, out: protocol.Deletion{},
			example: Example{Body: protocol.DeleteRequest{Jobs: []uint64{1}}, Refused: []int{missing}}},
		{pattern: "POST /v1/jobs/prune", id: "pruneJobs", in: protocol.PruneRequest{}, out: protocol.Deletion{},
			example: Example{Body: protocol.PruneRequest{OlderThan: 30 * 86400, DryRun: true}}},
		{pattern: "DELETE /v1/datasets/{name}", id: "deleteDataset", out: empty, example: Example{Path: dataset}},
		{pattern: "POST /v1/members", id: "addMember", in: protocol.AddRequest{}, out: protocol.Members{},
			example: Example{Body: protocol.AddRequest{ID: "d", HTTP: "192.0.2.4:7100"},
				Refused: []int{conflict, http.StatusServiceUnavailable}}},
		{pattern: "DELETE /v1/members/{id}", id: "removeMember", out: protocol.Members{},
			example: Example{Path: path{"id": "d"}, Refused: []int{missing}}},
		{pattern: "POST /v1/transfer", id: "transferLeadership", in: protocol.TransferRequest{}, out: protocol.Members{},
			example: Example{Body: protocol.TransferRequest{To: "d"}, Refused: []int{conflict, missing}}},
		{pattern: "POST /v1/workers/{worker}/trust", id: "trustWorker", out: protocol.Cluster{},
			example: Example{Path: path{"worker": "w1"}, Refused: []int{missing}}},
		{pattern: "GET /v1/backup", id: "getBackup", medias: []string{mediaBytes}, statuses: []int{missing}},
		{pattern: "POST /v1/tokens", id: "createToken", in: protocol.TokenRequest{}, out: protocol.Token{},
			example: Example{Body: protocol.TokenRequest{ID: exampleToken, Role: "submit", Owner: "sam",
				SHA256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}},
		{pattern: "GET /v1/tokens", id: "listTokens", out: []protocol.Token{}},
		{pattern: "DELETE /v1/tokens/{id}", id: "revokeToken", out: protocol.Token{},
			example: Example{Path: path{"id": exampleToken}}},
		{pattern: "GET /v1/audit", id: "listAuditRecords", params: new(protocol.AuditQuery).Params(),
			out: []protocol.AuditRecord{}, statuses: []int{missing},
			example: Example{Query: query{"limit": 10, "refused": false}}},
		{pattern: "POST /v1/audit", id: "addAuditRecords", in: protocol.RecordEntry{}, out: empty,
			example: Example{Body: protocol.RecordEntry{Records: []protocol.AuditRecord{}},
				Refused: []int{http.StatusForbidden}}},
		{pattern: "GET /v1/revocations", id: "listRevocations", out: []protocol.Revocation{}},
		{pattern: "POST /v1/revocations", id: "revokeCertificate", in: protocol.Revocation{}, optional: []string{"time"},
			out: protocol.Revocation{}, example: Example{Body: map[string]any{"serial": "1f2e3d4c5b6a7988"}}},
	}
}
