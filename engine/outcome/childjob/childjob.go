// Package childjob has what a job that consists of other jobs needs of them: the bytes by
// which a sub-job reports its outcome, and the progress of all of them together.
package childjob

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/wire"
)

// ErrFormat is wrapped by every error about bytes that are no outcome of a sub-job.
var ErrFormat = errors.New("the result of a sub-job is damaged, or has another format")

// Outcome is what a sub-job ends with.
type Outcome struct {
	Head        json.RawMessage // pipeline.Outcome in JSON
	Model       []byte          // the model file; empty where the job keeps none
	Curve       []byte          // the encoded learning curve, or empty
	Predictions []byte          // the encoded predictions.Set of the held-out rows, or empty
}

// Encode returns the bytes: head, model and curve, each after its length in 8 bytes,
// little-endian, then the predictions.
func (o *Outcome) Encode() []byte {
	b := make([]byte, 0, 3*8+len(o.Head)+len(o.Model)+len(o.Curve)+len(o.Predictions))
	for _, field := range [][]byte{o.Head, o.Model, o.Curve} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(field)))
		b = append(b, field...)
	}
	return append(b, o.Predictions...)
}

// Decode reads what Encode wrote; the fields share the memory of b. What is in the fields is
// not checked. Errors wrap ErrFormat.
func Decode(b []byte) (*Outcome, error) {
	r := wire.NewReader(b)
	o := &Outcome{Head: r.Bytes("outcome"), Model: r.Bytes("model"), Curve: r.Bytes("learning curve")}
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.Err())
	}
	if r.Len() > 0 {
		o.Predictions = r.Take("predictions", uint64(r.Len()))
	}
	return o, nil
}

// AppendList appends encoded outcomes, each after its length in 8 bytes, little-endian.
func AppendList(dst []byte, parts [][]byte) []byte {
	for _, p := range parts {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// List reads what AppendList wrote; the parts share the memory of b. Errors wrap ErrFormat.
func List(b []byte) (parts [][]byte, err error) {
	r := wire.NewReader(b)
	for r.Len() > 0 {
		parts = append(parts, r.Bytes("result"))
	}
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.Err())
	}
	return parts, nil
}

// AppendCells appends the list of encoded outcomes, and behind them, as one more element, how long
// each was computed: nanoseconds in 8 bytes, little-endian.
func AppendCells(dst []byte, parts [][]byte, took []uint64) []byte {
	times := make([]byte, 0, 8*len(took))
	for _, ns := range took {
		times = binary.LittleEndian.AppendUint64(times, ns)
	}
	return AppendList(AppendList(dst, parts), [][]byte{times})
}

// Cells reads what AppendCells wrote of so many outcomes, which share the memory of b, or what
// AppendList wrote of them: then took is nil. Errors wrap ErrFormat.
func Cells(b []byte, count int) (parts [][]byte, took []uint64, err error) {
	parts, err = List(b)
	switch {
	case err != nil:
		return nil, nil, err
	case count < 0:
		return nil, nil, fmt.Errorf("%w: the number of outcomes is negative: %d", ErrFormat, count)
	case len(parts) == count:
		return parts, nil, nil
	case len(parts) != count+1 || len(parts[count]) != 8*count:
		return nil, nil, fmt.Errorf("%w: the list has %d elements for %d outcomes", ErrFormat, len(parts), count)
	}
	for times := parts[count]; len(times) > 0; times = times[8:] {
		took = append(took, binary.LittleEndian.Uint64(times))
	}
	return parts[:count], took, nil
}

// Sum returns the progress of jobs of one kind together, without a phase, and how many of them
// are done. They may stop early: once some are done, each other job is expected to take their
// mean number of steps; before that, the greatest Steps of any job. Step is at most Steps if
// that is known.
func Sum(jobs []round.TaskProgress) (sum round.Progress, done int) {
	sum.Loss = -1
	losses, expected, greatest := 0, expectedSteps(jobs), uint64(0)
	for i := range jobs {
		j := &jobs[i]
		step, steps := j.Step, max(j.Step, expected)
		greatest = max(greatest, j.MostSteps)
		switch {
		case j.Done && j.Known:
			steps = step
		case j.Done:
			step = steps
		}
		sum.Step, sum.Steps, sum.Samples = sum.Step+step, sum.Steps+steps, sum.Samples+j.Samples
		if j.Done {
			done++
		}
		if j.Known && j.Loss >= 0 {
			sum.Loss = (float64(max(sum.Loss, 0)*float64(losses)) + j.Loss) / float64(losses+1)
			losses++
		}
	}
	if greatest > 0 && done == 0 { // jobs may end earlier, and none has ended
		sum.MostSteps = max(sum.Steps, greatest*uint64(len(jobs)))
	}
	return sum, done
}

// expectedSteps returns the steps that a job is expected to take; 0: unknown.
func expectedSteps(jobs []round.TaskProgress) (steps uint64) {
	ended, most := uint64(0), uint64(0)
	for i := range jobs {
		j := &jobs[i]
		most = max(most, j.Steps)
		if j.Done && j.Known {
			ended++
			steps += j.Step
		}
	}
	if ended == 0 {
		return most
	}
	return steps / ended
}

const (
	// lateFraction is how long a task that is late takes yet, as a fraction of its time so far.
	lateFraction = 0.1
	// ownSteps is the fraction of its steps after which the speed of a task counts as much as the speed of its kind.
	ownSteps = 0.1
	// leastFraction is the least fraction that kinds of unknown cost can bring about.
	leastFraction = 0.1
)

// Fraction returns which fraction of its time a round has run, by the times of its tasks. Tasks of one kind cost about
// the same for each step, and take about as many steps. Steps of different kinds are never compared. A kind without a
// timed step is expected to cost as much as the others on average, unless less than a tenth of the round would then
// have run: each kind begins early in a round, so from the first tenth on such a kind costs less. ok is false if no
// kind has a timed step.
func Fraction(kinds [][]round.TaskProgress) (fraction float64, ok bool) {
	steps, perStep := make([]float64, len(kinds)), make([]float64, len(kinds)) // of a task; seconds, 0 if not known
	now, mean, known, running := 0.0, 0.0, 0, 0
	for k, tasks := range kinds {
		steps[k] = float64(expectedSteps(tasks))
		if sum, done := Sum(tasks); done == 0 && len(tasks) > 0 {
			steps[k] = max(steps[k], float64(sum.MostSteps)/float64(len(tasks)))
		}
		seconds, timed, most := 0.0, 0.0, uint64(0)
		for i := range tasks {
			t := &tasks[i]
			now, most = max(now, t.Time.Last), max(most, t.Step)
			if t.Known && !t.Done {
				running++
			}
			if t.Timed() && t.Step > t.Time.From {
				seconds, timed = seconds+t.Time.Last-t.Time.Began, timed+float64(t.Step-t.Time.From)
			}
		}
		if steps[k] == 0 { // the jobs do not say how many they take
			steps[k] = float64(most)
		}
		if timed > 0 {
			perStep[k] = seconds / timed
			mean, known = mean+float64(perStep[k]*steps[k]), known+1
		}
	}
	if known == 0 {
		return 0, false
	}
	mean /= float64(known)
	lanes := float64(max(1, running)) // tasks that are computed at a time

	past, left, longest := now, 0.0, 0.0 // the time so far; seconds of computing that are left, and of one task
	unknown := 0.0                       // seconds of computing of kinds without a timed step
	for k, tasks := range kinds {
		for i := range tasks {
			t := &tasks[i]
			all, each := max(steps[k], float64(t.Step)), perStep[k]
			switch {
			case each == 0 && !t.Done:
				unknown += mean
			case t.Done && !t.Known:
				past += each * all / lanes
			case t.Done && !t.Timed():
				past += each * float64(t.Step) / lanes
			case t.Done:
			case t.Known:
				if own := float64(t.Step - min(t.Step, t.Time.From)); own > 0 {
					each = (t.Time.Last - t.Time.Began + float64(each*ownSteps*all)) / (own + float64(ownSteps*all))
				}
				spent := now - t.Time.Began
				rest := max(float64(each*(all-float64(t.Time.From)))-spent, lateFraction*spent)
				past += perStep[k] * float64(t.Time.From) / lanes
				left, longest = left+rest, max(longest, rest)
			default:
				left, longest = left+float64(each*all), max(longest, each*all)
			}
		}
	}
	rest := max(longest, left/lanes)
	return past / (past + max(rest, min(rest+unknown/lanes, past/leastFraction-past))), true
}
