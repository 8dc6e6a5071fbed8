package api

import (
	"io"
	"testing"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// TestRanges: a download of a model or a blob can begin in the middle, here and through a follower. It goes on only if
// the bytes are the same.
func TestRanges(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	s.finish(s.submit("one"), "the model")
	f := s.follower()
	digest := blobs.Sum([]byte("the model"))
	for _, c := range []struct {
		site   *site
		path   string
		header []string
		status int
		want   string
	}{
		{s, "/v1/models/one", nil, 200, "the model"},
		{s, "/v1/models/one", []string{"Range", "bytes=4-"}, 206, "model"},
		{f, "/v1/models/one", []string{"Range", "bytes=0-2"}, 206, "the"},
		{s, "/v1/blobs/" + digest, []string{"Range", "bytes=-5"}, 206, "model"},
		{s, "/v1/blobs/" + digest, []string{"Range", "bytes=4-", "If-Range", `"` + digest + `"`}, 206, "model"},
		{s, "/v1/blobs/" + digest, []string{"Range", "bytes=4-", "If-Range", `"other"`}, 200, "the model"},
		{s, "/v1/blobs/" + digest, []string{"If-None-Match", `"` + digest + `"`}, 304, ""},
	} {
		answer := c.site.ask("GET", c.path, nil, c.header...)
		b, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || string(b) != c.want || answer.Header.Get("ETag") != `"`+digest+`"` {
			t.Errorf("%s %v: status %d, %q, %v, %v", c.path, c.header, answer.StatusCode, b, answer.Header, err)
		}
	}
	answer := s.ask("GET", "/v1/models/one", nil, "Range", "bytes=9-")
	answer.Body.Close()
	if answer.StatusCode != 416 || answer.Header.Get("Content-Range") != "bytes */9" {
		t.Errorf("behind the end: status %d %v", answer.StatusCode, answer.Header)
	}
}
