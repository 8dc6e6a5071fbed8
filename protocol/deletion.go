package protocol

import (
	"fmt"
	"math"
	"time"
)

// JobsDeleteEntry deletes jobs that have ended, with their models and predictions.
// It is refused, and deletes none, where one of them has not ended. Numbers of no
// job, deleted ones among them, are passed over.
type JobsDeleteEntry struct {
	Jobs []uint64 `json:"jobs"` // at least one, at most MaxDelete
	Time int64    `json:"time"` // Unix seconds of the leader, for display
}

// MaxDelete bounds the jobs that one entry deletes: with it an entry stays below
// 128 KiB.
const MaxDelete = 4096

// ModelDeleteEntry deletes the models of a done job, all of them where it made one
// for each fold; the job stays, with its result. It is refused for a job that has
// none; one whose models were deleted already stays as it is.
type ModelDeleteEntry struct {
	Job  uint64 `json:"job"`
	Time int64  `json:"time"`
}

// DeleteRequest deletes jobs by number: all of them or, where one has not ended or
// never was, none.
type DeleteRequest struct {
	Jobs []uint64 `json:"jobs"` // at least one, at most MaxDelete
}

// PruneRequest deletes the jobs that ended so long ago, by the clock of the leader.
type PruneRequest struct {
	OlderThan int64 `json:"older_than_seconds"` // since their end
	// States are those that the jobs ended in; empty: any.
	States []JobState `json:"states,omitempty"`
	DryRun bool       `json:"dry_run,omitempty"` // only say which
}

// Check says what is wrong with a request.
func (r *PruneRequest) Check() error {
	if r.OlderThan < 0 || r.OlderThan > math.MaxInt64/2 {
		return fmt.Errorf("the age of the jobs to delete is negative: %d seconds", r.OlderThan)
	}
	for _, s := range r.States {
		if !s.Final() {
			return fmt.Errorf("jobs in the state %.80q cannot be pruned: want done, failed or cancelled", s)
		}
	}
	return nil
}

// Deletion says which jobs were deleted.
type Deletion struct {
	Jobs   []DeletedJob `json:"jobs"` // by number
	DryRun bool         `json:"dry_run,omitempty"`
	// Frees is the bytes of the blobs that nothing refers to any more. Each coordinator deletes
	// such a blob when it is of the age BlobGrace or older.
	Frees uint64 `json:"frees_bytes"`
}

// BlobGrace is how old a blob that nothing refers to must be before coordinators delete it: a
// younger one may belong to an import that has just begun.
const BlobGrace = time.Hour

// DeletedJob is a job that was deleted.
type DeletedJob struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"`
	// State, Ended and Bytes, of its models and predictions, are not known of a job
	// that had been deleted before.
	State  JobState `json:"state,omitempty"`
	Ended  int64    `json:"ended,omitempty"`
	Bytes  uint64   `json:"bytes,omitempty"`
	Before bool     `json:"deleted_before,omitempty"`
}
