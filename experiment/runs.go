package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// Run is a run of a plan.
type Run struct {
	Unit   int // of Plan.Job
	Method int // of Spec.Methods
	round.Cell
	Key string
}

// keyOf returns the key of a run: the SHA-256 of its sub-job. tested says which samples the run tests if the splits of
// the job overlap: more splits in their list do not change a run. Which measures are shown does not either, because
// each run has all measures that the labels allow.
func keyOf(child *round.Job, tested string, labels *dataset.LabelType) string {
	return hexSum(keyText(child, tested, labels))
}

// keyText returns the text of the sum of a key.
func keyText(child *round.Job, tested string, labels *dataset.LabelType) []byte {
	c := *child
	c.NoModel, c.Predictions, c.PredictedRows = false, 0, 0
	if c.Split.Overlap {
		c.Split.Assigned, c.Split.Folds, c.Split.Fold, c.Split.Overlap = tested, 0, 0, false
	}
	b := append([]byte("coppice-cell\x00"), marshalled(&c)...)
	if !labels.Same(&dataset.LabelType{}) {
		b = append(b, marshalled(labels)...)
	}
	return b
}

// methodKeys makes the keys of the runs of one method. There may be very many runs, and their texts differ in the
// seeds, the fold and what is tested alone. So a text with marks in these places is made once.
type methodKeys struct {
	labels      *dataset.LabelType
	first, rest markedText // of the runs of fold 0, which the text leaves out, and of the other folds; nil: not made yet
	buf         []byte
}

// markedText is the text of a key without its variable parts. If it has only one part, the text has a mark in another
// place, so it cannot be used.
type markedText [][]byte

// The marks: values that no run has.
const (
	markedSeed      = math.MaxUint64
	markedSplitSeed = math.MaxUint64 - 1
	markedFold      = math.MaxInt
)

// markedTested takes the place of the digest of the tested samples.
var markedTested = strings.Repeat("tested", 11)

// of returns keyOf(child, tested, labels). Children of one method differ in Seed, Split.Seed and Split.Fold alone.
func (k *methodKeys) of(child *round.Job, tested string) string {
	overlap := child.Split.Overlap
	text := &k.rest
	if child.Split.Fold == 0 {
		text = &k.first
	}
	if *text == nil {
		*text = newMarkedText(child, k.labels)
	}
	parts, plain := *text, true
	if overlap { // JSON writes another text in another way
		_, plain = digests.Parse(tested)
	}
	if len(parts) == 1 || !plain {
		return keyOf(child, tested, k.labels)
	}
	b := append(k.buf[:0], parts[0]...)
	b = strconv.AppendUint(b, child.Seed, 10)
	b = append(b, parts[1]...)
	b = strconv.AppendUint(b, child.Split.Seed, 10)
	b = append(b, parts[2]...)
	if len(parts) > 3 {
		if overlap {
			b = append(b, tested...)
		} else {
			b = strconv.AppendInt(b, int64(child.Split.Fold), 10)
		}
		b = append(b, parts[3]...)
	}
	k.buf = b
	return hexSum(b)
}

func newMarkedText(child *round.Job, labels *dataset.LabelType) (text markedText) {
	c := *child
	c.Seed, c.Split.Seed = markedSeed, markedSplitSeed
	marks := []string{strconv.FormatUint(markedSeed, 10), strconv.FormatUint(markedSplitSeed, 10)}
	switch {
	case c.Split.Overlap:
		marks = append(marks, markedTested)
	case c.Split.Fold > 0:
		c.Split.Fold = markedFold
		marks = append(marks, strconv.Itoa(markedFold))
	}
	rest := keyText(&c, markedTested, labels)
	for _, mark := range marks {
		before, after, ok := bytes.Cut(rest, []byte(mark))
		if !ok || bytes.Contains(after, []byte(mark)) {
			return markedText{nil}
		}
		text, rest = append(text, before), after
	}
	return append(text, rest)
}

// marshalled is the JSON of what was made here.
func marshalled(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("experiment: %T that was made here does not marshal: %v", v, err))
	}
	return b
}

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
		return nil, fmt.Errorf("%w: job %s has no runs, or another number of methods than its spec, which names %d",
			ErrFolder, j.Name, len(j.Spec.Methods))
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

// RunsOf lists the runs of a job of runs by unit. rows has, for each method of the job, its index in the spec. tested
// is as in a Plan.
func RunsOf(j *round.Job, tested []string, rows []int) ([]Run, error) {
	switch {
	case j.Cells == nil || len(rows) != len(j.Cells.Rows):
		return nil, fmt.Errorf("%w: the job has no runs, or another number of methods than %d", ErrFolder, len(rows))
	case j.Split.Overlap && len(tested) != j.Split.Folds:
		return nil, fmt.Errorf("%w: test samples are listed for %d folds, want %d", ErrFolder, len(tested), j.Split.Folds)
	}
	var list []Run
	keys := make([]methodKeys, len(j.Cells.Rows))
	err := pipeline.Cells(j, func(unit int, at round.Cell, child *round.Job) error {
		of := ""
		if j.Split.Overlap {
			of = tested[child.Split.Fold]
		}
		if list == nil {
			list = make([]Run, 0, j.Cells.Count())
		}
		k := &keys[at.Row]
		k.labels = &j.Cells.Labels
		run := Run{Unit: unit, Method: rows[at.Row], Cell: at}
		if child.Algorithm == external.Name { // each run has other settings: the digest of its predictions
			run.Key = keyOf(child, of, k.labels)
		} else {
			run.Key = k.of(child, of)
		}
		list = append(list, run)
		return nil
	})
	return list, err
}
