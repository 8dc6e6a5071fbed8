package page

import (
	"cmp"
	"html/template"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/protocol/access"
)

// How often views are made, and what visits share.
const (
	renderEvery = 2 * time.Second        // a view without a stream
	renderApart = 500 * time.Millisecond // at least, a view with a stream
	mostApart   = 3 * time.Second        // at most, if only what Config.Edits does not count has changed
	manyOpen    = 12                     // open pages with which renderApart doubles
	// freshFor is how long a live view is shown again to visits of its caller, if Config.Edits stays as it is. If many
	// pages are open, that time is crowd.apart, in which their feeds make the same views.
	freshFor = time.Second
	// maxRecent bounds the bytes of the live views that are kept.
	maxRecent = 4 << 20
)

// crowd is the number of open pages.
type crowd struct{ atomic.Int64 }

// apart returns the least time between two makings of a view if nothing was edited: the longer, the more pages are
// open.
func (c *crowd) apart() time.Duration {
	return min(renderApart+renderApart*time.Duration(c.Load())/manyOpen, mostApart)
}

// crowded reports whether so many pages are open that no view has a stream: views are made so seldom that its lines
// would say nothing.
func (c *crowd) crowded() bool { return c.apart() > renderEvery }

// recent has the live views that were made in the last seconds, so that many visits cost little.
type recent struct {
	mu    sync.Mutex
	made  map[viewKey]*rendering
	bytes int // of all of them
}

// viewKey identifies a view and its caller.
type viewKey struct {
	caller access.Caller // without From
	path   string
}

func keyOf(r *http.Request) viewKey {
	caller := *access.Of(r.Context())
	caller.From = ""
	return viewKey{caller, below(r)}
}

// rendering is a view with its part of the page.
type rendering struct {
	*view
	main  template.HTML
	began time.Time // before the view was made, as edits
	edits uint64

	mu    sync.Mutex
	whole []byte // the page for browsers that name the coordinator so; nil: it was not made yet
	host  string
}

// find returns the rendering of a view if it is younger than a time and nothing was edited since it began, or nil.
func (c *recent) find(key viewKey, edits uint64, younger time.Duration) *rendering {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.made[key]; r != nil && r.edits == edits && time.Since(r.began) < younger {
		return r
	}
	return nil
}

// put keeps a rendering of a live view, until there are too many bytes of later ones.
func (c *recent) put(key viewKey, r *rendering) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = make(map[viewKey]*rendering)
	}
	size := func(r *rendering) int { return 2 * len(r.main) } // its page is about as large
	if old := c.made[key]; old != nil {
		c.bytes -= size(old)
	}
	if c.bytes += size(r); c.bytes > maxRecent {
		clear(c.made)
		c.bytes = size(r)
	}
	c.made[key] = r
}

// answer answers a visit with the page of a view.
func (s *site) answer(w http.ResponseWriter, r *http.Request, build viewFunc) {
	made, err := s.make(&visit{Request: r, site: s, api: s.api}, build)
	if err != nil {
		s.serve(w, r, func(*visit) (*view, error) { return nil, err })
		return
	}
	f := frame{view: made.view, Main: made.main, Path: below(r)}
	text, err := made.page(r.Host, func() ([]byte, error) { return s.lay(r, &f) })
	s.write(w, r, cmp.Or(f.Status, http.StatusOK), text, err)
}

// edits returns a number that grows with Config.Edits and with each action of a page, whose effect a coordinator that
// does not lead sees later.
func (s *site) edits() uint64 {
	acted := s.acted.Load()
	if s.Edits == nil {
		return acted
	}
	return acted + s.Edits()
}

// make makes a view, or returns the rendering that was made for the same caller a short time ago.
func (s *site) make(v *visit, build viewFunc) (*rendering, error) {
	if s.Edits != nil {
		if r := s.live.recent.find(keyOf(v.Request), s.edits(), max(freshFor, s.live.open.apart())); r != nil {
			return r, nil
		}
	}
	return s.makeNow(v, build)
}

// makeNow makes a view and keeps it for later visits.
func (s *site) makeNow(v *visit, build viewFunc) (*rendering, error) {
	r := &rendering{began: time.Now(), edits: s.edits()}
	made, main, err := s.render(v, build)
	if err != nil {
		return nil, err
	}
	if r.view, r.main = made, template.HTML(main); s.Edits != nil && (made.Shared || !made.Still) {
		s.live.recent.put(keyOf(v.Request), r)
	}
	return r, nil
}

// page returns the page of a view. lay makes it if no browser of the same host has asked for it yet.
func (r *rendering) page(host string, lay func() ([]byte, error)) ([]byte, error) {
	r.mu.Lock()
	whole, known := r.whole, r.host == host
	r.mu.Unlock()
	if whole != nil && known {
		return whole, nil
	}
	whole, err := lay()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole, r.host = whole, host
	return whole, nil
}
