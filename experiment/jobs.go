package experiment

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// JobSpec is what a job of an experiment keeps of it.
type JobSpec struct {
	Outline *Outline `json:"outline"`
	Dataset int      `json:"dataset"` // of the outline's table
	Rows    []int    `json:"rows"`    // of the table, for each row of the job's cells
}

// DecodeJobSpec reads the spec of a job of an experiment.
func DecodeJobSpec(b []byte) (*JobSpec, error) {
	s := new(JobSpec)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if s.Outline == nil || s.Outline.Table == nil || s.Dataset < 0 || s.Dataset >= len(s.Outline.Table.Datasets) {
		return nil, fmt.Errorf("%w: a job without an outline", ErrFolder)
	}
	for _, row := range s.Rows {
		if row < 0 || row >= len(s.Outline.Table.Rows) {
			return nil, fmt.Errorf("%w: a job with row %d of %d", ErrFolder, row, len(s.Outline.Table.Rows))
		}
	}
	return s, nil
}

// ClusterJob is a job of an experiment, with the list that its split names.
type ClusterJob struct {
	*protocol.JobInfo
	Spec     *JobSpec
	Assigned []uint16
}

// Cells lists the job's cells by unit.
func (j *ClusterJob) Cells() ([]Cell, error) {
	rows := make(map[int]int)
	for i, row := range j.Spec.Rows {
		rows[i] = row
	}
	return CellsOf(j.Job, j.Assigned, j.dataset().rows, rows)
}

type ofDataset struct {
	name string
	rows int
}

func (j *ClusterJob) dataset() ofDataset {
	d := j.Spec.Outline.Table.Datasets[j.Spec.Dataset]
	return ofDataset{d.Name, d.Rows}
}

// FromJobs makes the layout of an experiment from its jobs, of which there is one, and the keys
// of each job's cells by unit. The newest job says what the table has; where two jobs have the same
// place in it, the newer one says which cell stands there.
func FromJobs(jobs []*ClusterJob) (l *Layout, keys map[uint64][]string, err error) {
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b *ClusterJob) int { return int(int64(a.ID) - int64(b.ID)) })
	o := jobs[len(jobs)-1].Spec.Outline
	datasets, rows := make(map[string]int), make(map[string]int)
	for i, d := range o.Table.Datasets {
		datasets[d.Name] = i
	}
	for i, r := range o.Table.Rows {
		rows[r.Name] = i
	}
	keys, places := make(map[uint64][]string), make(map[Place]string)
	for _, j := range jobs {
		cells, err := j.Cells()
		if err != nil {
			return nil, nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		dataset, there := datasets[j.dataset().name]
		for _, c := range cells {
			keys[j.ID] = append(keys[j.ID], c.Key)
			if c.Row < 0 || !there {
				continue
			}
			if row, ok := rows[j.Spec.Outline.Table.Rows[c.Row].Name]; ok {
				places[Place{dataset, row, c.Repeat, c.Fold}] = c.Key
			}
		}
	}
	l, err = o.Layout(places)
	return l, keys, err
}
