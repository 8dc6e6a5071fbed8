package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxHeads bounds the heads of model files that are kept.
const maxHeads = 50_000

// digestPrefix is how many characters of its digest the name of a run's model has, as on a cluster.
const digestPrefix = 12

// modelEnd ends the name of the file of a run's model.
const modelEnd = ".model"

// heads keeps what was read of model files.
type heads struct {
	mu  sync.Mutex
	all map[string]head // by path
}

// head is what lists say of a model.
type head struct {
	of                         stamp
	algorithm, dataset, digest string
	err                        error // why the file cannot be read
	measures                   *evaluation
}

// head returns the head of a model file.
func (f *Folder) head(p *place) head {
	h := &f.heads
	h.mu.Lock()
	known, ok := h.all[p.path]
	h.mu.Unlock()
	if ok && known.of.is(p.file) {
		return known
	}
	now := head{of: p.file}
	job, err := f.training(p)
	if now.err = err; err == nil {
		now.algorithm, now.dataset, now.digest = job.Job.Algorithm, job.Dataset, job.Models[0].Digest
		now.measures = &evaluation{job.Measures, job.EvaluatedOn == heldOut}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil || len(h.all) >= maxHeads {
		h.all = make(map[string]head)
	}
	h.all[p.path] = now
	return now
}

// modelOf describes a model of a list.
func (f *Folder) modelOf(p *place) protocol.ModelInfo {
	h := f.head(p)
	info := protocol.ModelInfo{Name: p.name, Job: p.id, Algorithm: h.algorithm, Dataset: h.dataset,
		ModelRef: protocol.ModelRef{Digest: h.digest, Bytes: uint64(p.file.size)}, Time: p.file.seconds()}
	if h.err != nil {
		info.Suspect = h.err.Error()
	}
	return info
}

// runModels lists the models of the runs of an experiment.
func (f *Folder) runModels(p *place) (list []*place) {
	dir := path.Join(p.path, modelsDir)
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		digest, is := strings.CutSuffix(e.Name(), modelEnd)
		if !is || !e.Type().IsRegular() || len(digest) < digestPrefix || strings.Trim(digest, "0123456789abcdef") != "" {
			continue
		}
		if info, err := e.Info(); err == nil {
			list = append(list, &place{name: p.name + "/" + digest[:digestPrefix], path: path.Join(dir, e.Name()),
				file: stampOf(info)})
		}
	}
	return list
}

// models lists the model files and the models of runs.
func (f *Folder) models(ctx context.Context) ([]*place, error) {
	c, err := f.contents(ctx)
	if err != nil {
		return nil, err
	}
	list := append([]*place{}, c.models...)
	for _, p := range c.experiments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, f.runModels(p)...)
	}
	return list, nil
}

func (f *Folder) listModels(r *http.Request) (any, error) {
	var q protocol.ModelQuery
	if err := readList(r, "a list of models", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	all, err := f.models(r.Context())
	if err != nil {
		return nil, err
	}
	order, _ := q.Order("time")
	needsHeads := q.Algorithm != "" || q.Dataset != "" || order == "algorithm" || order == "dataset"
	chosen, _, next, err := protocol.Part(all, &q.ListQuery, "time", func(at **place) protocol.Element {
		p := *at
		var h head
		if needsHeads && r.Context().Err() == nil {
			h = f.head(p)
		}
		time := float64(p.file.modified)
		return protocol.Element{Name: p.name, Chosen: q.Has(p.name, "", p.file.seconds()) &&
			(q.Algorithm == "" || q.Algorithm == h.algorithm) && (q.Dataset == "" || q.Dataset == h.dataset),
			Keys: map[string]any{"submitted": time, "time": time, "name": p.name, "algorithm": h.algorithm,
				"dataset": h.dataset}}
	})
	if err == nil {
		err = r.Context().Err()
	} else {
		err = noElement(q.After)
	}
	if err != nil {
		return nil, err
	}
	if q.Newest > 0 {
		chosen = chosen[max(0, len(chosen)-q.Newest):]
	}
	list := []protocol.ModelInfo{}
	for _, p := range chosen {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		list = append(list, f.modelOf(p))
	}
	answer := part{list: list}
	if next != "" {
		query := r.URL.Query()
		query.Set("after", next)
		answer.link = fmt.Sprintf("<?%s>; rel=\"next\"", query.Encode())
	}
	return answer, nil
}

// sendModel sends a model file: by its name, or as EXPERIMENT/DIGEST with at least the first characters of the digest.
func (f *Folder) sendModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	c, err := f.contents(r.Context())
	if err != nil {
		respond(w, nil, err)
		return
	}
	p := c.byModel[name]
	if at := strings.LastIndexByte(name, '/'); p == nil && at > 0 && len(name[at+1:]) >= digestPrefix {
		if of := c.byExperiment[name[:at]]; of != nil {
			for _, m := range f.runModels(of) {
				if strings.HasPrefix(path.Base(m.path), name[at+1:]) {
					p = m
				}
			}
		}
	}
	if p == nil {
		respond(w, nil, notFound("the folder has no model %.200q", name))
		return
	}
	in, err := f.root.Open(p.path)
	if err != nil {
		respond(w, nil, err)
		return
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFound("%s is not a file any more", p.path)
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	http.ServeContent(w, r, "", info.ModTime(), in)
}

// training describes the training that made a model file.
func (f *Folder) training(p *place) (*protocol.JobInfo, error) {
	in, err := f.root.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file any more")
	}
	h, made, err := predict.ReadHead(io.NewSectionReader(in, 0, info.Size()), info.Size())
	if err != nil {
		return nil, err
	}
	return jobOf(p, h, made)
}
