package protocol

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// EntryKind is the second byte of a log entry, after Version.
type EntryKind uint8

// The kinds of log entries. All but Commit and Request have a JSON body. A state machine
// that meets a kind it does not know stops there, naming the version it needs.
const (
	EntryLead          EntryKind = 1
	EntryMember        EntryKind = 2
	EntryDatasetPut    EntryKind = 3
	EntryDatasetDelete EntryKind = 4
	EntrySubmit        EntryKind = 5
	EntryJobState      EntryKind = 6
	EntryCommit        EntryKind = 7
	EntryResult        EntryKind = 8
	EntryFinish        EntryKind = 9
	EntryCancel        EntryKind = 10
	EntryCondemn       EntryKind = 11
	EntryPause         EntryKind = 12
	EntryResume        EntryKind = 13
	EntrySuspect       EntryKind = 14
	EntryTrust         EntryKind = 15
	EntryMemberRemove  EntryKind = 16
	EntryJobsDelete    EntryKind = 17
	EntryModelDelete   EntryKind = 18
	EntryExperiment    EntryKind = 19
	EntryWithhold      EntryKind = 20
	EntryTokenPut      EntryKind = 21
	EntryTokenRevoke   EntryKind = 22
	EntryRequest       EntryKind = 23
	EntryRecord        EntryKind = 24
	EntryRevoke        EntryKind = 25
	EntryShare         EntryKind = 26
)

// LeadEntry makes Node the leader: the epoch is the entry's log index. Nonce
// lets the driver see that the entry is its own.
type LeadEntry struct {
	Node  string `json:"coordinator"`
	Nonce string `json:"nonce"`
	// Time, in Unix seconds, and Millis are for the events of jobs; 0: the time is not known.
	Time   int64 `json:"time,omitempty"`
	Millis int64 `json:"millis,omitempty"`
}

// MemberRemoveEntry forgets a coordinator's addresses, if they are known.
type MemberRemoveEntry struct {
	ID string `json:"id"`
}

// DatasetPutEntry is an import: every shard's blob is on a majority already.
// A name that exists with another digest is refused; with the same, accepted.
type DatasetPutEntry struct {
	Name     string            `json:"name"`
	Manifest *dataset.Manifest `json:"manifest"`
	Owner    string            `json:"owner,omitempty"` // the user who imports it; empty: nobody
	// Private is true if only the owner and admins may read the samples. An equal dataset that exists stays as it is.
	Private bool  `json:"private,omitempty"`
	Time    int64 `json:"time"` // Unix seconds of the leader, for display
}

// DatasetDeleteEntry removes a dataset's name; refused while a job needs it.
type DatasetDeleteEntry struct {
	Name string `json:"name"`
	// Owner, if set, refuses the entry if the dataset has another owner.
	Owner string `json:"owner,omitempty"`
}

// ShareEntry lets all users read what was private: a dataset, or jobs. All of it must exist.
type ShareEntry struct {
	Dataset string   `json:"dataset,omitempty"` // its name; empty: no dataset
	Jobs    []uint64 `json:"jobs,omitempty"`    // at most MaxDelete
	// Owner, if set, refuses the entry if the dataset or one of the jobs has another owner.
	Owner string `json:"owner,omitempty"`
}

// SubmitEntry queues a job: its ID is the entry's log index. The same Token again is answered
// with the job that it made, or refused if that job was deleted. The same Name with the same Job
// is answered with the job that has the name, and with another Job is refused. The name of a job
// that failed or was cancelled is free again.
type SubmitEntry struct {
	Token   string          `json:"token"`
	Name    string          `json:"name,omitempty"` // empty: named after its ID
	Dataset string          `json:"dataset"`        // name
	Spec    json.RawMessage `json:"spec"`           // as the user wrote it, for display
	Job     *round.Job      `json:"job"`
	// AuditPPM is how many tasks of a million are computed twice, at most a million.
	AuditPPM uint32 `json:"audit_ppm,omitempty"`
	// Experiment is the name of the experiment that the job is of; empty: of none.
	Experiment string `json:"experiment,omitempty"`
	// Owner is the user who submits the job; empty: nobody.
	Owner string `json:"owner,omitempty"`
	// Private is true if only the owner and admins may read the models, predictions and records of the job.
	Private bool `json:"private,omitempty"`
	// MaxOwned, if set, refuses a new job while the owner has that many that have not ended.
	MaxOwned uint32 `json:"max_owned,omitempty"`
	// MaxQueue, if set, refuses a new job while that many have not ended.
	MaxQueue uint32 `json:"max_queue,omitempty"`
	Time     int64  `json:"time"`
}

// ExperimentEntry queues the jobs of an experiment, all of them or none. The first job's ID is
// the entry's log index, or above the IDs of an earlier ExperimentEntry, and the others follow.
// Tokens, names and bounds are as in a SubmitEntry.
type ExperimentEntry struct {
	Name string        `json:"name"`
	Jobs []SubmitEntry `json:"jobs"` // at most MaxExperimentJobs, each with a name
	// Outline is the digest of the blob with the experiment's outline, which all of its jobs
	// have from then on; empty: it has none. With an outline there may be no jobs, if the
	// experiment has some.
	Outline string `json:"outline,omitempty"`
	// After, of an entry without jobs, is the index of a log entry after which the submitter read the
	// experiment. The entry is refused if the experiment has another outline since then. 0: it is not known.
	After uint64 `json:"after,omitempty"`
}

// MaxExperimentJobs bounds the jobs of one ExperimentEntry.
const MaxExperimentJobs = 1 << 10

// Millis returns the milliseconds of t beyond its Unix second.
func Millis(t time.Time) int64 { return t.UnixMilli() - 1000*t.Unix() }

// Seconds writes milliseconds as seconds.
func Seconds(millis int64) float64 { return float64(millis) / 1000 }

// JobStateEntry moves a job to Running or Failed. Refused when Epoch is not
// current or the job is paused.
type JobStateEntry struct {
	Epoch uint64   `json:"epoch"`
	Job   uint64   `json:"job"`
	State JobState `json:"state"`
	Error string   `json:"error,omitempty"`
	Time  int64    `json:"time"`
	// Millis are the milliseconds of Time, so that running times are exact.
	Millis int64 `json:"millis,omitempty"`
	// Events are what the leader knows of the job and the log may not have yet.
	Events []NumberedEvent `json:"events,omitempty"`
}

// ResultEntry records the part of one collected task as it arrives. Refused
// when Epoch is not current or Round is not above the committed round.
type ResultEntry struct {
	Epoch  uint64 `json:"epoch"`
	Job    uint64 `json:"job"`
	Round  uint64 `json:"round"` // rounds folded once this one is
	Task   uint32 `json:"unit"`
	Of     uint32 `json:"of"`     // tasks in the round
	Digest string `json:"digest"` // its blob
	Bytes  uint64 `json:"bytes"`
	// Compute is how long it was computed, in nanoseconds, as its worker says; 0: not known.
	Compute uint64 `json:"compute,omitempty"`
	// Failed is true if the result says that the task, a run of an experiment, failed.
	Failed bool            `json:"failed,omitempty"`
	Events []NumberedEvent `json:"events,omitempty"` // as in a JobStateEntry
}

// WithholdEntry records that tasks of a job of runs are not run, since the budget of their rows is
// used up. A task that is recorded already stays as it is. Refused as a ResultEntry is.
type WithholdEntry struct {
	Epoch uint64   `json:"epoch"`
	Job   uint64   `json:"job"`
	Round uint64   `json:"round"` // rounds folded once this one is
	Tasks []uint32 `json:"units"` // at most MaxWithheld
	// Compute is how long each of them had been computed, in nanoseconds, when its budget ended
	// it; 0: they had not begun.
	Compute uint64 `json:"compute,omitempty"`
}

// MaxWithheld bounds the tasks of one WithholdEntry.
const MaxWithheld = 4096

// FinishEntry ends a job with its result; the blobs are on a majority already.
// Refused when Epoch is not current or the job is not running.
type FinishEntry struct {
	Epoch   uint64          `json:"epoch"`
	Job     uint64          `json:"job"`
	Outcome json.RawMessage `json:"result"` // pipeline.Outcome
	Models  []ModelRef      `json:"models"` // one, or one for each fold
	// Predictions are the predictions of held-out rows, if they are kept.
	Predictions *BlobRef `json:"predictions,omitempty"`
	// Cells are the outcomes of the runs of a job of runs, by task: each blob is a
	// list of the next ones and of how long they took (childjob.AppendCells).
	Cells []CellsRef `json:"cells,omitempty"`
	// Methods has the computing times of the runs that ended well, by row of a job of runs;
	// empty: they are not known.
	Methods []RunTimes `json:"methods,omitempty"`
	// Progress is the last algorithms.Progress, for display.
	Progress json.RawMessage `json:"progress,omitempty"`
	// Curve is the rest of the learning curve, as in a CommitEntry; FoldCurves are those
	// of the folds, whole, each of at most MaxCurve bytes.
	Curve      []byte   `json:"curve,omitempty"`
	FoldCurves [][]byte `json:"fold_curves,omitempty"`
	Seconds    float64  `json:"seconds"` // of running, for display
	Time       int64    `json:"time"`
	Millis     int64    `json:"millis,omitempty"` // of Time
	// Events are as in a JobStateEntry.
	Events []NumberedEvent `json:"events,omitempty"`
}

// RunTimes adds up how long runs of one method were computed.
type RunTimes struct {
	Runs        uint64 `json:"runs"`
	Nanoseconds uint64 `json:"nanoseconds"`
}

// CellsRef names a blob with the outcomes of some runs.
type CellsRef struct {
	BlobRef
	Count int `json:"count"` // runs
}

// JobEntry is the body of the entries that a user's wish about one job makes: Cancel, Pause, Resume and ModelDelete.
//
// Cancel cancels a job that is queued, running or paused. A job that is
// cancelled already stays so. Pause pauses a job that is queued or running: its driver stops, and the
// last commit stays. Resume queues a paused job again, to go on from its last commit. These three are refused if the
// job has ended otherwise. ModelDelete deletes all models of a done job; the job stays, with its result. It is
// refused if the job never had a model. An entry whose wish is fulfilled already changes nothing.
type JobEntry struct {
	Job    uint64 `json:"job"`
	Time   int64  `json:"time"`
	Millis int64  `json:"millis,omitempty"` // of Time
	// Events, of all but ModelDelete, are what the leader of EventsEpoch knows of the job and the log may not have yet.
	Events      []NumberedEvent `json:"events,omitempty"`
	EventsEpoch uint64          `json:"events_epoch,omitempty"`
}

// SuspectEntry distrusts Worker, which answered with bytes that the leader, as
// verifier, computed otherwise, and marks the jobs that it served. Refused when
// Epoch is not current.
type SuspectEntry struct {
	Epoch  uint64   `json:"epoch"`
	Worker string   `json:"worker"`
	Jobs   []uint64 `json:"jobs"`   // at most MaxSuspects; unknown ones are passed over
	Reason string   `json:"reason"` // at most MaxReason bytes are kept
	Time   int64    `json:"time"`
	Millis int64    `json:"millis,omitempty"` // of Time
}

// TrustEntry ends the distrust of a worker; the marks of jobs stay.
type TrustEntry struct {
	Worker string `json:"worker"`
}

// The bounds of a distrust and of a submission.
const (
	MaxReason   = 1 << 10 // bytes that are kept of a reason
	MaxSuspects = 1 << 14 // jobs that one Suspect entry marks
	MaxToken    = 128     // bytes of a Submit entry's token
)

// CondemnEntry marks blobs that nothing references for deletion.
type CondemnEntry struct {
	Digests []string `json:"digests"`
}

// CommitEntry is a chunk of a job's trainer state; it takes effect with the last
// chunk. Chunks of a state follow each other from offset 0. Refused when Epoch is
// not current or Round does not grow. Greatest size: 520 KiB.
type CommitEntry struct {
	Epoch    uint64
	Job      uint64
	Round    uint64 // rounds folded into this state
	Offset   uint64
	Total    uint64 // bytes of the state, at most MaxRaftState
	Blob     string // set if the state is a blob: then Data is empty and Total its size
	Progress []byte // JSON of algorithms.Progress, for display; at most MaxProgress
	// Curve is, in the last chunk, what the learning curve gained since the commit
	// before (curve.Extend), at most MaxCurve bytes; empty: nothing.
	Curve []byte
	Data  []byte // at most CommitChunk
	// Events, in the last chunk, are as in a JobStateEntry: at most MaxNewEvents.
	Events []NumberedEvent
}

// Append encodes the entry.
func (e *CommitEntry) Append(dst []byte) []byte { return e.code(coder{b: dst}).b }

// Decode reads the entry. Progress, Curve and Data share the memory of b.
func (e *CommitEntry) Decode(b []byte) error {
	c := e.code(coder{b: b, reads: true})
	inline := e.Total <= MaxRaftState && e.Offset <= e.Total && uint64(len(e.Data)) <= min(CommitChunk, e.Total-e.Offset)
	switch {
	case len(e.Progress) > MaxProgress:
		c.fail("the progress has %d bytes, want at most %d", len(e.Progress), MaxProgress)
	case len(e.Curve) > MaxCurve:
		c.fail("the learning curve has %d bytes, want at most %d", len(e.Curve), MaxCurve)
	case e.Blob == "" && !inline, e.Blob != "" && (e.Offset != 0 || len(e.Data) > 0):
		c.fail("the commit is not valid: %d bytes at offset %d of %d, blob %q", len(e.Data), e.Offset, e.Total, e.Blob)
	}
	return c.end()
}

func (e *CommitEntry) code(c coder) coder {
	c.begin(Kind(EntryCommit))
	numbers(&c, &e.Epoch, &e.Job, &e.Round, &e.Offset, &e.Total)
	c.text(&e.Blob, 64)
	c.bytes(&e.Progress)
	c.bytes(&e.Curve)
	c.bytes(&e.Data)
	c.events(&e.Events)
	return c
}

// EncodeEntry encodes any entry but a CommitEntry and a RequestEntry.
func EncodeEntry(k EntryKind, body any) []byte {
	return appendJSON(nil, Kind(k), body)
}

// DecodeEntry reads the body of an entry that EncodeEntry wrote.
func DecodeEntry(b []byte, body any) error {
	k, err := KindOf(b)
	if err != nil {
		return err
	}
	return readJSON(b, k, body)
}

// AuditRecord says that a caller has asked for a change, and what became of it. If Count is above
// 0, it says instead that a caller was refused so many requests.
type AuditRecord struct {
	Number  uint64 `json:"number"` // the first record has 1
	Time    int64  `json:"time"`   // Unix seconds
	Caller  string `json:"caller"` // name of a user or a process; -: it is not known
	Role    string `json:"role"`
	Token   string `json:"token,omitempty"`   // id of the caller's token
	Serial  string `json:"serial,omitempty"`  // of the caller's certificate
	From    string `json:"from"`              // address of the caller
	Via     string `json:"via,omitempty"`     // name of the proxy that has sent the request
	Request string `json:"request"`           // method and path; of several refusals, the last
	About   string `json:"about,omitempty"`   // the job or the dataset, for example
	Refused string `json:"refused,omitempty"` // why the request was refused; empty: it was not
	Count   uint64 `json:"count,omitempty"`   // refused requests; 0: the record is about one change
}

// NoCaller stands for the name of a caller that has none.
const NoCaller = "-"

// Clip shortens the texts of a record: 10,000 records must be small.
func (r *AuditRecord) Clip() {
	r.Caller = cmp.Or(r.Caller, NoCaller)
	for _, f := range r.texts() {
		*f.text = clip(*f.text, f.most)
	}
}

// maxVia bounds the bytes of AuditRecord.Via.
const maxVia = 64

// recordText is a text of a record, and how many bytes it may have.
type recordText struct {
	text *string
	most int
}

func (r *AuditRecord) texts() []recordText {
	return []recordText{
		{&r.Caller, 64}, {&r.Role, 16}, {&r.Token, 16}, {&r.Serial, MaxSerial}, {&r.From, 64}, {&r.Request, 128},
		{&r.About, 96}, {&r.Refused, 192},
		{&r.Via, maxVia},
	}
}

// RequestEntry is a change that a caller asks for. The state applies Inner, and keeps Record with
// what became of it.
type RequestEntry struct {
	Record AuditRecord // without Number, Refused and Count
	Inner  []byte      // an entry, but no RequestEntry
}

// Append encodes the entry.
func (e *RequestEntry) Append(dst []byte) []byte { return e.code(coder{b: dst}).b }

// Decode reads the entry. Inner shares the memory of b.
func (e *RequestEntry) Decode(b []byte) error {
	c := e.code(coder{b: b, reads: true})
	if kind, err := KindOf(e.Inner); err != nil || kind == Kind(EntryRequest) {
		c.fail("the inner entry of %d bytes is not valid", len(e.Inner))
	}
	return c.end()
}

func (e *RequestEntry) code(c coder) coder {
	c.begin(Kind(EntryRequest))
	seconds := uint64(e.Record.Time)
	numbers(&c, &seconds)
	e.Record.Time = int64(seconds)
	for _, f := range e.Record.texts() {
		if f.text != &e.Record.Via {
			c.text(f.text, uint32(f.most))
		}
	}
	c.bytes(&e.Inner)
	switch { // an entry without a proxy ends here, as older ones do
	case c.reads && len(c.b) == 0:
		e.Record.Via = ""
	case c.reads || e.Record.Via != "":
		if c.text(&e.Record.Via, maxVia); e.Record.Via == "" {
			c.fail("the name of a proxy is empty")
		}
	}
	return c
}

// RecordEntry keeps records of what is no entry: changes of members, backups, and refusals.
type RecordEntry struct {
	Records []AuditRecord `json:"records"` // at most MaxRecords
}

// MaxRecords bounds the records of one RecordEntry.
const MaxRecords = 64

// RevokeEntry revokes a certificate. A certificate that is revoked already stays so. Certificates
// that had ended a day before Time are forgotten.
type RevokeEntry struct{ Revocation }

// MaxSerial bounds the digits of a serial number, and MaxIdentity the bytes of an identity.
const (
	MaxSerial   = 40
	MaxIdentity = 256
)

// CheckSerial reports whether a text is the serial number of a certificate: hexadecimal digits in
// lower case, without zeros before them.
func CheckSerial(text string) bool {
	return text != "" && len(text) <= MaxSerial && text[0] != '0' && strings.Trim(text, "0123456789abcdef") == ""
}

// AuditQuery says which audit records a client asks for.
type AuditQuery struct {
	Limit   int    // at most so many; 0: 100
	Since   int64  // Unix seconds; older records are left out
	Caller  string // the name of the caller; empty: all
	Refused bool   // true: only requests that were refused
	After   uint64 // if not 0, the number of a record: only records that follow it in the list
}

// Params lists the parameters of the query.
func (q *AuditQuery) Params() []Param {
	return []Param{
		{Name: "limit", Into: &q.Limit, Want: "a number of records", Least: new(0.0), Most: new(10_000.0)},
		{Name: "since", Into: &q.Since, Want: wantTime, Least: new(0.0)},
		{Name: "caller", Into: &q.Caller, Want: "the name of a caller"},
		{Name: "refused", Into: &q.Refused, Want: wantBool},
		{Name: "after", Into: &q.After, Want: "the number of the record before the first one"},
	}
}
