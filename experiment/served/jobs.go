package served

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
)

// jobHandlers answer requests about the trainings of model files, as jobs that have ended.
type jobHandlers struct{ *trainings }

// find returns the training that a request names, by its number or by the name of its model file. A name may be a
// number, too, and lists have links by number.
func (j *jobHandlers) find(r *http.Request) (*place, *contents, error) {
	c, err := j.contents(r.Context())
	if err != nil {
		return nil, nil, err
	}
	key := r.PathValue("job")
	at := slices.IndexFunc(c.models, func(p *place) bool { return strconv.FormatUint(p.id, 10) == key })
	if at >= 0 {
		return c.models[at], c, nil
	}
	if p := c.byModel[key]; p != nil {
		return p, c, nil
	}
	return nil, nil, notFound("the folder has no training %.200q", key)
}

func (j *jobHandlers) get(r *http.Request) (any, error) {
	p, _, err := j.find(r)
	if err != nil {
		return nil, err
	}
	return j.job(p), nil
}

// changes streams a training, which has ended.
func (j *jobHandlers) changes(w http.ResponseWriter, r *http.Request) {
	stream(w, r, func() (any, bool, error) {
		v, err := j.get(r)
		return v, true, err
	})
}

// list lists the trainings of model files. The runs of experiments are not among them.
func (j *jobHandlers) list(r *http.Request) (any, error) {
	q, err := protocol.ParseJobQuery(r.URL.Query())
	if err != nil {
		return nil, wrong(err)
	}
	c, err := j.contents(r.Context())
	if err != nil {
		return nil, err
	}
	key, descending := q.Order()
	list := protocol.ListQuery{Sort: key, Limit: q.Limit}
	if descending {
		list.Sort = "-" + key
	}
	if q.After > 0 {
		list.After = strconv.FormatUint(q.After, 10)
	}
	some, total, next, err := protocol.Part(c.models, &list, "", func(at **place) protocol.Element {
		p := *at
		if r.Context().Err() != nil {
			return protocol.Element{Keys: map[string]any{key: 0.0}}
		}
		return jobElement(p, j.head(p), &q, key, descending)
	})
	if err != nil {
		return nil, noElement(list.After)
	}
	answer := protocol.JobList{Jobs: []protocol.JobInfo{}, Total: total}
	answer.Next, _ = strconv.ParseUint(next, 10, 64) // no text is 0
	for _, p := range some {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		info := j.job(p)
		if !q.Full {
			abridge(info)
		}
		answer.Jobs = append(answer.Jobs, *info)
	}
	return answer, r.Context().Err()
}

// jobElement says what a list of trainings knows of one of them.
func jobElement(p *place, h head, q *protocol.JobQuery, key string, descending bool) protocol.Element {
	state := protocol.Done
	if h.err != nil {
		state = protocol.Failed
	}
	time := p.file.seconds()
	e := protocol.Element{Name: strconv.FormatUint(p.id, 10), Chosen: q.Owner == "" && q.Experiment == "" &&
		(q.Algorithm == "" || q.Algorithm == h.algorithm) && (q.Dataset == "" || q.Dataset == h.dataset) &&
		protocol.MatchName(q.Name, p.name) && time >= q.Since && (q.Until == 0 || time <= q.Until) &&
		(len(q.States) == 0 || slices.Contains(q.States, state)), Keys: map[string]any{
		"submitted": float64(p.id), "ended": float64(p.file.modified), "name": p.name, "state": string(state),
		"algorithm": h.algorithm, "dataset": h.dataset}}
	if _, ok := e.Keys[key]; ok {
		return e
	}
	value, known := 0.0, false // values of held-out samples come first, and trainings without a value last
	if h.measures != nil {
		value, known = h.measures.measures[key]
	}
	const far = math.MaxFloat64
	switch {
	case !known:
		value = math.Inf(1)
	case !h.measures.held:
		value = far
	}
	if descending && !known {
		value = math.Inf(-1)
	} else if descending && !h.measures.held {
		value = -far
	}
	e.Keys[key] = value
	return e
}

// abridge leaves out of a list what may be large, as coordinators do.
func abridge(j *protocol.JobInfo) {
	if j.Job != nil {
		short := *j.Job
		short.Params, short.Cells, j.Job = nil, nil, &short
	}
	j.Spec, j.Outcome, j.Models, j.Error = nil, nil, nil, protocol.Brief(j.Error)
}

// The bounds of the file of a learning curve, in bytes, and of its points. Of more points, some are left out.
const (
	maxCurve  = 16 << 20
	maxPoints = 2048
)

// curve answers with the learning curve of a training, if coppice train --curve-out has written it to a file with the
// name of the model file: for m.model, that is m.csv, m-curve.csv or m.model.csv. The model of a fold, m-fold2.model,
// has its part of the curve of all folds.
func (j *jobHandlers) curve(r *http.Request) (any, error) {
	p, c, err := j.find(r)
	if err != nil {
		return nil, err
	}
	answer := &protocol.JobCurve{ID: p.id, Name: p.name, State: j.job(p).State, Points: []curve.Point{}}
	base := strings.TrimSuffix(p.path, path.Ext(p.path))
	of, fold := base, -1
	if at := strings.LastIndex(base, "-fold"); at > 0 {
		if n, err := strconv.Atoi(base[at+len("-fold"):]); err == nil {
			of, fold = base[:at], n
		}
	}
	for _, name := range []string{base + ".csv", base + "-curve.csv", p.path + ".csv", of + ".csv", of + "-curve.csv"} {
		if at, ok := c.curves[name]; !ok || at.size > maxCurve {
			continue
		}
		points, err := j.readCurve(name, fold)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if points != nil {
			answer.Points = points
			return answer, nil
		}
	}
	return answer, nil
}

// readCurve reads the learning curve of a file, of one fold if the file has folds. It returns nil if the file is not
// of a learning curve.
func (j *jobHandlers) readCurve(name string, fold int) ([]curve.Point, error) {
	in, err := j.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return decodeCurve(io.LimitReader(in, maxCurve), fold)
}

// decodeCurve reads a curve as coppice train writes it.
func decodeCurve(in io.Reader, fold int) ([]curve.Point, error) {
	records := csv.NewReader(in)
	records.ReuseRecord = true
	header, err := records.Read()
	if err != nil {
		return nil, nil
	}
	folds := len(header) > 0 && header[0] == "fold"
	first := 0
	if folds {
		first = 1
	}
	if !slices.Equal(header[first:], []string{"step", "training_loss", "validation_loss", "seconds"}) {
		return nil, nil
	}
	points, every, read := []curve.Point{}, 1, 0
	for line := 2; ; line++ {
		record, err := records.Read()
		if err == io.EOF {
			return points, nil
		}
		if err != nil {
			return nil, err
		}
		if folds && record[0] != strconv.Itoa(fold) {
			continue
		}
		p := curve.Point{Millis: curve.Unknown}
		p.Step, err = strconv.ParseUint(record[first], 10, 64)
		seconds := math.NaN()
		for i, into := range []*float64{&p.Training, &p.Validation, &seconds} {
			*into = math.NaN()
			if text := record[first+1+i]; text != "" && err == nil {
				*into, err = strconv.ParseFloat(text, 64)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if seconds >= 0 && seconds < 1e12 {
			p.Millis = int64(seconds * 1000)
		}
		if read++; (read-1)%every == 0 {
			points = append(points, p)
		}
		if len(points) > maxPoints {
			for i := range (len(points) + 1) / 2 {
				points[i] = points[2*i]
			}
			points, every = points[:(len(points)+1)/2], 2*every
		}
	}
}
