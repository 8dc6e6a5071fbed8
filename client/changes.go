package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
)

// maxLine bounds a line of a stream of changes in bytes.
const maxLine = 64 << 20

// errEnded says why a stream is opened again.
var errEnded = errors.New("the coordinator has ended the stream of changes")

// follow reads the lines of a stream of changes until the stream ends and see has reported that
// the last line tells the end. It calls see with nil about every second while nothing changes. It opens the stream by the
// rules of all requests. Once a line has come, it opens the stream again until ctx is done,
// however long no coordinator answers.
func follow[T any](ctx context.Context, c *Client, k *call, see func(line *T) (end bool)) error {
	k.method, k.stream, k.timeout = http.MethodGet, true, c.watchSilence
	k.take = func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		end := false
		for lines.Scan() {
			k.told = true
			var line *T
			if len(lines.Bytes()) > 0 {
				line = new(T)
				if err := json.Unmarshal(lines.Bytes(), line); err != nil {
					return fmt.Errorf("a line of the stream of changes cannot be read: %w", err)
				}
			}
			end = see(line)
		}
		if end {
			return nil
		}
		return cmp.Or(lines.Err(), errEnded)
	}
	return c.do(ctx, k)
}

// Watch calls f with the state of a job at each change, and about every second, until the job
// ends, and returns its last state. Once the cluster has told the state, Watch survives
// changes of leader and even the loss of all coordinators: it goes on until ctx is done, and
// calls Waiting meanwhile. What f sees never goes back, and is always about one job, even if
// another job gets its name. A job that does not exist is an error at once.
func (c *Client) Watch(ctx context.Context, job string, f func(*protocol.JobInfo)) (last *protocol.JobInfo, err error) {
	k := &call{path: at("jobs", job, "changes")}
	err = follow(ctx, c, k, func(j *protocol.JobInfo) bool {
		switch {
		case last != nil && last.State.Final():
			return true
		case j == nil && last == nil:
			return false
		case j == nil:
			j = last
		case last != nil && !j.State.Final():
			// A state that is older than the last one is left out, but never the end of the job, since
			// nothing follows. Only one leader knows how far the present tasks are. If the next leader
			// knows of fewer steps, the last progress stays until it is passed.
			if j.Index < last.Index || j.Rounds < last.Rounds {
				return false
			}
			if last.Progress != nil && (j.Progress == nil || j.Progress.Step < last.Progress.Step) {
				j.Progress = last.Progress
			}
		}
		last, k.path = j, at("jobs", strconv.FormatUint(j.ID, 10), "changes") // another job may get the name
		f(j)
		return j.State.Final()
	})
	return last, err
}

// Watch calls f with how far an experiment is at each change, and about every second, until all
// of its jobs have ended, and returns its last state. It goes on as Client.Watch does. With
// runs, f learns which runs have ended, each run at least once.
func (e Experiments) Watch(ctx context.Context, name string, runs bool, f func(*protocol.ExperimentLine)) (last *protocol.Experiment, err error) {
	k := &call{path: at("experiments", name, "changes") + "?runs=" + strconv.FormatBool(runs)}
	err = follow(ctx, e.client, k, func(x *protocol.ExperimentLine) bool {
		if x == nil && last == nil {
			return false
		}
		if x == nil {
			x = &protocol.ExperimentLine{Experiment: *last}
		}
		last = &x.Experiment
		f(x)
		return x.Ended()
	})
	return last, err
}
