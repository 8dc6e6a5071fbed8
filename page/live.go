package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// A live region is an element of a template that is sent again after each change. Nothing else in a page has these
// texts, since templates escape what others wrote.
const (
	liveBegin = `<div data-live id="live-`
	liveEnd   = template.HTML(`</div><!--live-->`)
)

// regions returns the live regions of a page by id. A region has no other inside.
func regions(page []byte) map[string]string {
	all := make(map[string]string)
	for {
		_, rest, found := bytes.Cut(page, []byte(liveBegin))
		if !found {
			return all
		}
		id, rest, _ := bytes.Cut(rest, []byte(`">`))
		var content []byte
		if content, page, found = bytes.Cut(rest, []byte(liveEnd)); !found {
			return all
		}
		all["live-"+string(id)] = string(content)
	}
}

// Times of live views.
const (
	editApart  = time.Second      // at most, after an edit
	aliveEvery = 15 * time.Second // a comment is sent after so long without a change
	againAfter = time.Second      // after an error
	restFactor = 10               // a feed rests so many times as long as it took to make the view
)

// hub has the live views that browsers watch. All browsers of one caller that watch the same view share one feed, so
// a view is made once for all of them.
type hub struct {
	mu    sync.Mutex
	feeds map[viewKey]*feed

	open   crowd
	recent recent
}

// feed is a live view.
type feed struct {
	cancel context.CancelFunc
	users  int           // guarded by hub.mu
	took   time.Duration // to make the view; only run uses it, and edits
	edits  uint64        // before the view was made

	mu sync.Mutex
	shown
	changed chan struct{} // closed after a change
}

// shown is what a feed shows. Nobody changes it.
type shown struct {
	now     map[string]string // the regions
	number  uint64            // of changes of the regions
	last    []byte            // the event with the last of these changes
	trouble string            // why the regions may be out of date; empty: they are not
	over    bool              // true if the view does not change any more
}

// join returns the feed of a view, and starts it if needed. The caller calls leave at the end.
func (h *hub) join(s *site, r *http.Request, build viewFunc) (f *feed, leave func()) {
	key := keyOf(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	f = h.feeds[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		f = &feed{cancel: cancel, changed: make(chan struct{})}
		h.feeds[key] = f
		go f.run(&visit{Request: r.Clone(ctx), site: s, api: s.api}, build)
	}
	f.users++
	h.open.Add(1)
	return f, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open.Add(-1)
		if f.users--; f.users == 0 {
			f.cancel()
			delete(h.feeds, key)
		}
	}
}

// run makes the view again after each change, until nobody watches it or it does not change any more. While a view is
// made, the lines of its stream count as one, so a view that is slow to make is made less often.
func (f *feed) run(v *visit, build viewFunc) {
	defer func() {
		if p := recover(); p != nil { // no server is around this goroutine that would keep the process alive
			v.site.Log.Error("a live view panicked", "path", v.URL.Path, "panic", p, "stack", string(debug.Stack()))
			f.publish(nil, "This is a fault of Coppice, and the page is not live any more. The log says more.", true)
		}
	}()
	for v.Context().Err() == nil {
		made, over := f.show(v, build, v.site.make)
		switch {
		case over:
			return
		case made == nil:
			f.pause(v, againAfter, againAfter)
		case made.Follow == "":
			f.pause(v, renderEvery, max(renderEvery, v.site.live.open.apart()))
		case v.site.live.open.crowded():
			f.pause(v, editApart, v.site.live.open.apart())
		default:
			over, err := f.await(v, made.Follow, build)
			if over {
				return
			}
			if err == nil {
				if !v.site.live.open.crowded() {
					f.pause(v, againAfter, againAfter) // the leader has changed, or everything is over
				}
				continue
			}
			// Perhaps the leader is away, which the view then says, or it serves too many streams.
			if _, over = f.show(v, build, v.site.makeNow); over {
				return
			}
			f.pause(v, renderEvery, renderEvery)
		}
	}
}

// await makes the view again after lines of a stream, until the stream ends, which may be with an error, until the view
// cannot be made or is over, or until many pages are open.
func (f *feed) await(v *visit, stream string, build viewFunc) (over bool, err error) {
	ctx, cancel := context.WithCancel(v.Context())
	news := make(chan struct{}, 1)
	go func() { // lines that nobody reads would wait in buffers, and arrive late
		defer close(news)
		var line []byte
		for line, err = range v.api.lines(ctx, stream) {
			if len(line) > 0 && err == nil {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	}()
	for range news {
		var made *view
		if made, over = f.show(v, build, v.site.makeNow); made != nil && !over {
			apart := v.site.live.open.apart()
			if f.pause(v, min(apart, editApart), apart); !v.site.live.open.crowded() {
				continue
			}
		}
		cancel()
		for range news {
		}
		return over, nil
	}
	cancel()
	return false, err
}

// show makes the view in some way and publishes it, or the error. The view is nil after an error. over is true if it
// does not change any more.
func (f *feed) show(v *visit, build viewFunc, how func(*visit, viewFunc) (*rendering, error)) (made *view, over bool) {
	began := time.Now()
	f.edits = v.site.edits()
	r, err := how(v, build)
	f.took = time.Since(began)
	switch {
	case v.Context().Err() != nil:
		return nil, true
	case err != nil:
		known := asError(err)
		over = known.lasts()
		f.publish(nil, known.Text, over)
		return nil, over
	}
	f.publish(regions([]byte(r.main)), "", r.Still)
	return r.view, r.Still
}

// lasts reports whether the same request has the same error again, such as about a job that was deleted. The leader may
// not know a new token yet, or have too much to do.
func (e *Error) lasts() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// pause waits for some time, longer after a view that took long to make, or until the context of v ends. After an edit
// it waits only for the time least.
func (f *feed) pause(v *visit, least, most time.Duration) {
	rest := min(restFactor*f.took, aliveEvery)
	began, next := time.Now(), max(least, rest)
	t := time.NewTimer(next)
	defer t.Stop()
	for {
		select {
		case <-v.Context().Done():
			return
		case <-t.C:
		}
		left := most - time.Since(began)
		if left <= 0 || v.site.edits() != f.edits {
			return
		}
		t.Reset(min(left, renderApart))
	}
}

// publish notes the regions of a view; nil: they stay as they are.
func (f *feed) publish(now map[string]string, trouble string, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.shown
	next.trouble, next.over = trouble, over
	if fresh := changes(f.now, now); len(fresh) > 0 {
		next.now, next.last = now, event("regions", fresh)
		next.number++
	} else if trouble == f.trouble && over == f.over {
		return
	}
	f.shown = next
	close(f.changed)
	f.changed = make(chan struct{})
}

// changes returns the regions that have changed.
func changes(before, now map[string]string) map[string]string {
	fresh := make(map[string]string)
	for id, text := range now {
		if was, known := before[id]; !known || was != text {
			fresh[id] = text
		}
	}
	return fresh
}

// follow answers with the changes of a view as server-sent events. The event "regions" has the live regions that have
// changed, by id. The event "trouble" says why the page may be out of date, and is empty once it is not.
func (s *site) follow(w http.ResponseWriter, r *http.Request, build viewFunc) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	f, leave := s.live.join(s, r, build)
	defer leave()
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep events back
	conn := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 2000\n\n")
	var sent shown
	for {
		f.mu.Lock()
		now, changed := f.shown, f.changed
		f.mu.Unlock()
		var b []byte
		if now.number == sent.number+1 {
			b = append(b, now.last...)
		} else if now.number > sent.number {
			b = event("regions", changes(sent.now, now.now))
		}
		if now.trouble != sent.trouble {
			b = append(b, event("trouble", now.trouble)...)
		}
		if now.over {
			b = append(b, event("over", true)...)
		}
		sent = now
		if _, err := w.Write(b); err != nil || conn.Flush() != nil || now.over {
			return
		}
		alive := time.NewTimer(aliveEvery)
		var err error
		select {
		case <-r.Context().Done():
		case <-changed:
		case <-alive.C:
			_, err = fmt.Fprint(w, ": alive\n\n")
		}
		if alive.Stop(); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

// event returns a server-sent event with a text or with texts by name.
func event(name string, value any) []byte {
	b := bytes.NewBufferString("event: " + name + "\ndata: ")
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // each < of a region would have six bytes
	_ = e.Encode(value)    // these values can always be encoded
	b.WriteByte('\n')
	return b.Bytes()
}
