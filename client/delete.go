package client

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// DeleteJobs deletes jobs that have ended, given by number or name: all of them or,
// where one has not ended or is not there, none. A number that was deleted before is
// told of as such.
func (c *Client) DeleteJobs(ctx context.Context, jobs ...string) (*protocol.Deletion, error) {
	var r protocol.DeleteRequest
	for _, job := range jobs {
		id, err := c.number(ctx, job)
		if err != nil {
			return nil, err
		}
		r.Jobs = append(r.Jobs, id)
	}
	var v protocol.Deletion
	return &v, c.json(ctx, http.MethodPost, at("jobs", "delete"), r, &v)
}

// number finds the number of a job, so that a request that is sent again is about the
// same one, also where another has its name meanwhile.
func (c *Client) number(ctx context.Context, job string) (uint64, error) {
	if id, err := strconv.ParseUint(job, 10, 64); err == nil { // no name has digits only
		return id, nil
	}
	j, err := c.Job(ctx, job)
	if err != nil {
		return 0, err
	}
	return j.ID, nil
}

// Prune deletes the jobs that ended some time ago. Where an answer was lost and the
// request sent again, what it says is of the last try.
func (c *Client) Prune(ctx context.Context, r protocol.PruneRequest) (*protocol.Deletion, error) {
	var v protocol.Deletion
	return &v, c.json(ctx, http.MethodPost, at("jobs", "prune"), r, &v)
}

// DeleteModel deletes the models of a done job, given by number or name; the job
// stays. Twice is once. The model of one fold is refused.
func (c *Client) DeleteModel(ctx context.Context, job string) (*protocol.JobInfo, error) {
	if !strings.Contains(job, "/") {
		id, err := c.number(ctx, job)
		if err != nil {
			return nil, err
		}
		job = strconv.FormatUint(id, 10)
	}
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodDelete, modelAt(job), nil, &v)
}
