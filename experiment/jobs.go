package experiment

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

// JobSpec is what a job of an experiment keeps of it: by that its runs have names and keys.
type JobSpec struct {
	Dataset string   `json:"dataset"`          // as the experiment names it
	Methods []string `json:"rows"`             // the name of each method of the job's runs
	Tested  []string `json:"tested,omitempty"` // as in a Set
}

// DecodeJobSpec reads the spec of a job of an experiment.
func DecodeJobSpec(b []byte) (*JobSpec, error) {
	s := new(JobSpec)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return s, nil
}

// ClusterJob is a job of an experiment.
type ClusterJob struct {
	*protocol.JobInfo
	Spec *JobSpec
}

// Runs lists the runs of the job by unit. The methods of runs are numbers in the job's spec.
func (j *ClusterJob) Runs() ([]Run, error) {
	if j.Job == nil || j.Job.Cells == nil || len(j.Spec.Methods) != len(j.Job.Cells.Rows) {
		return nil, fmt.Errorf("%w: job %s has no runs, or another number of methods than its spec, which names %d", ErrFolder, j.Name, len(j.Spec.Methods))
	}
	methods := make([]int, len(j.Spec.Methods))
	for i := range methods {
		methods[i] = i
	}
	runs, err := RunsOf(j.Job, j.Spec.Tested, methods)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	return runs, nil
}

// NameOf returns the name of one of the job's runs.
func (j *ClusterJob) NameOf(c *Run) result.Name {
	return result.Name{Dataset: j.Spec.Dataset, Method: j.Spec.Methods[c.Method], Repeat: c.Repeat, Fold: c.Fold}
}
