package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cluster describes the cluster.
func (c *Client) Cluster(ctx context.Context) (*protocol.Cluster, error) {
	var v protocol.Cluster
	return &v, c.json(ctx, http.MethodGet, at("cluster"), nil, &v)
}

// Datasets lists the datasets.
func (c *Client) Datasets(ctx context.Context) (v []protocol.Dataset, err error) {
	return v, c.json(ctx, http.MethodGet, at("datasets"), nil, &v)
}

// Dataset describes one dataset.
func (c *Client) Dataset(ctx context.Context, name string) (*protocol.Dataset, error) {
	var v protocol.Dataset
	return &v, c.json(ctx, http.MethodGet, at("datasets", name), nil, &v)
}

// DeleteDataset removes a dataset's name; refused while a job needs it.
func (c *Client) DeleteDataset(ctx context.Context, name string) error {
	if _, err := c.Dataset(ctx, name); err != nil {
		return err
	}
	err := c.json(ctx, http.MethodDelete, at("datasets", name), nil, nil)
	if IsNotFound(err) { // it was there
		if _, now := c.Dataset(ctx, name); IsNotFound(now) {
			return nil // a first try went through, its answer was lost
		}
	}
	return err
}

// Submit queues a job. A submission that is sent again because its answer was
// lost makes no second job.
func (c *Client) Submit(ctx context.Context, s protocol.Spec) (*protocol.JobInfo, error) {
	return c.SubmitRequest(ctx, protocol.SubmitRequest{Spec: s})
}

// SubmitRequest is Submit with more than a spec. Whoever keeps the Token may send
// the same request again at any time, from another process too, and is told of the
// job that it made; an empty one is drawn.
func (c *Client) SubmitRequest(ctx context.Context, r protocol.SubmitRequest) (*protocol.JobInfo, error) {
	if r.Token == "" {
		r.Token = rand.Text()
	}
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodPost, at("jobs"), r, &v)
}

// SubmitExperiment queues the jobs of an experiment, all of them or none. A submission that is
// sent again because its answer was lost makes no other jobs.
func (c *Client) SubmitExperiment(ctx context.Context, r protocol.ExperimentRequest) (*protocol.JobList, error) {
	if r.Token == "" {
		r.Token = rand.Text()
	}
	var v protocol.JobList
	return &v, c.json(ctx, http.MethodPost, at("experiments"), r, &v)
}

// Cells returns the outcomes of the cells of a job that have ended; each is given to take. With
// records they have the learning curves and predictions that the job keeps.
func (c *Client) Cells(ctx context.Context, job string, records bool, take func(protocol.CellOutcome) error) error {
	for from := 0; ; {
		var page protocol.JobCells
		if err := c.json(ctx, http.MethodGet, at("jobs", job, "runs")+"?from="+strconv.Itoa(from)+"&records="+strconv.FormatBool(records), nil, &page); err != nil {
			return err
		}
		for _, cell := range page.Cells {
			if err := take(cell); err != nil {
				return err
			}
		}
		if page.Next <= from {
			return nil
		}
		from = page.Next
	}
}

// CellStates tells how those cells of a job have ended that are from a unit on and below another; each
// is given to take.
func (c *Client) CellStates(ctx context.Context, job string, from, until int, take func(protocol.CellState) error) error {
	for {
		var page protocol.JobCellStates
		if err := c.json(ctx, http.MethodGet, at("jobs", job, "runs", "states")+fmt.Sprintf("?from=%d&until=%d", from, until), nil, &page); err != nil {
			return err
		}
		for _, cell := range page.States {
			if err := take(cell); err != nil {
				return err
			}
		}
		if page.Next <= from {
			return nil
		}
		from = page.Next
	}
}

// Jobs lists all jobs with all that is known of them, the oldest first.
func (c *Client) Jobs(ctx context.Context) ([]protocol.JobInfo, error) {
	list, err := c.ListJobs(ctx, protocol.JobQuery{Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	return list.Jobs, nil
}

// ListJobs lists the jobs that a query asks for.
func (c *Client) ListJobs(ctx context.Context, q protocol.JobQuery) (*protocol.JobList, error) {
	path := at("jobs")
	if values := q.Values().Encode(); values != "" {
		path += "?" + values
	}
	var v protocol.JobList
	return &v, c.json(ctx, http.MethodGet, path, nil, &v)
}

// Job describes a job by number or name.
func (c *Client) Job(ctx context.Context, job string) (*protocol.JobInfo, error) {
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodGet, at("jobs", job), nil, &v)
}

// Curve returns the learning curve of a job, by number or name.
func (c *Client) Curve(ctx context.Context, job string) (*protocol.JobCurve, error) {
	var v protocol.JobCurve
	return &v, c.json(ctx, http.MethodGet, at("jobs", job, "curve"), nil, &v)
}

// Cancel cancels a job. Once it returns, the job will have no model, whoever leads.
func (c *Client) Cancel(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.wish(ctx, job, "cancel")
}

// Pause pauses a job; it keeps its last commit.
func (c *Client) Pause(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.wish(ctx, job, "pause")
}

// Resume lets a paused job go on.
func (c *Client) Resume(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.wish(ctx, job, "resume")
}

// wish finds the job first, so that a request that is sent again is about the same
// one, also where another has got its name meanwhile.
func (c *Client) wish(ctx context.Context, job, what string) (*protocol.JobInfo, error) {
	j, err := c.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodPost, at("jobs", strconv.FormatUint(j.ID, 10), what), nil, &v)
}

// Trust lets a distrusted worker be used again; one that is not distrusted is an
// error.
func (c *Client) Trust(ctx context.Context, worker string) error {
	distrusted := func() (bool, error) {
		cluster, err := c.Cluster(ctx)
		return err == nil && slices.ContainsFunc(cluster.Distrusted, func(d protocol.Distrusted) bool { return d.Worker == worker }), err
	}
	before, err := distrusted()
	if err != nil {
		return err
	}
	if !before {
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("the worker %q is not quarantined", worker)}
	}
	err = c.json(ctx, http.MethodPost, at("workers", worker, "trust"), nil, nil)
	if IsNotFound(err) { // it was
		if still, asked := distrusted(); asked == nil && !still {
			return nil // a first try went through, its answer was lost
		}
	}
	return err
}

// Models lists the models.
func (c *Client) Models(ctx context.Context) (v []protocol.ModelInfo, err error) {
	return v, c.json(ctx, http.MethodGet, at("models"), nil, &v)
}

// NewestModels lists the last n models, all of them where there are fewer, in the order of their jobs; n is 1 or more.
func (c *Client) NewestModels(ctx context.Context, n int) (v []protocol.ModelInfo, err error) {
	return v, c.json(ctx, http.MethodGet, at("models")+"?newest="+strconv.Itoa(n), nil, &v)
}

// Model returns a model file: of a job's name, or of job/fold.
func (c *Client) Model(ctx context.Context, name string) ([]byte, error) {
	return c.bytes(ctx, modelAt(name))
}

// Blob returns a blob after checking it against its digest.
func (c *Client) Blob(ctx context.Context, digest string) ([]byte, error) {
	b, err := c.bytes(ctx, at("blobs", digest))
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != digest {
		return nil, fmt.Errorf("the bytes received for blob %.12s do not match its digest", digest)
	}
	return b, nil
}

func (c *Client) bytes(ctx context.Context, path string) (b []byte, err error) {
	return b, c.do(ctx, &call{method: http.MethodGet, path: path, timeout: blobTimeout, limit: c.maxBytes, take: func(r io.Reader) error {
		b, err = io.ReadAll(r)
		return err
	}})
}

// PutBlob stores bytes on a majority of the coordinators and returns their digest.
func (c *Client) PutBlob(ctx context.Context, b []byte) (digest string, err error) {
	sum := sha256.Sum256(b)
	digest = hex.EncodeToString(sum[:])
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return digest, c.put(ctx, digest, int64(len(b)), open)
}

// PutFile stores a file whose digest is known.
func (c *Client) PutFile(ctx context.Context, digest, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return c.put(ctx, digest, info.Size(), func() (io.ReadCloser, error) { return os.Open(path) })
}

func (c *Client) put(ctx context.Context, digest string, size int64, open func() (io.ReadCloser, error)) error {
	return c.do(ctx, &call{
		method: http.MethodPut, path: at("blobs", digest), body: open, size: size, timeout: blobTimeout,
		take: func(io.Reader) error { return nil },
	})
}

// putDataset commits a manifest whose blobs are stored.
func (c *Client) putDataset(ctx context.Context, name string, m *dataset.Manifest) (*protocol.Dataset, error) {
	var v protocol.Dataset
	k, err := jsonCall(http.MethodPost, at("datasets"), protocol.DatasetPutEntry{Name: name, Manifest: m}, &v)
	if err != nil {
		return nil, err
	}
	k.limit, k.timeout = c.maxJSON, blobTimeout // a new leader may have to fetch blobs first
	return &v, c.do(ctx, k)
}
