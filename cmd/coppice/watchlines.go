package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/protocol"
)

// changes writes a job as a line of JSON whenever it has changed.
type changes struct {
	w    io.Writer
	last []byte // of the job without its log index
	err  error
	stop func() // called after an error
}

// see writes the job unless it is as it was. It is flushed with each line.
func (c *changes) see(j *protocol.JobInfo) {
	same := *j
	same.Index = 0
	now, err := json.Marshal(&same)
	if err != nil || c.err != nil || bytes.Equal(now, c.last) {
		return
	}
	c.last = now
	line, err := json.Marshal(j)
	if err == nil {
		_, err = c.w.Write(append(line, '\n'))
	}
	if err != nil {
		c.err = err
		c.stop()
	}
}

// watchLines writes a job as a line of JSON at each change, the last one as it ended; that
// a job failed or was cancelled is an error then.
func watchLines(a *app, cl *client.Client, j *protocol.JobInfo) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	c := &changes{w: printable.NewJSONWriter(a.data), stop: cancel}
	last, err := cl.Watch(ctx, strconv.FormatUint(j.ID, 10), c.see)
	if err = cmp.Or(c.err, left(j.Name, err)); err != nil {
		return err
	}
	_, _, err = finished(last)
	return err
}
