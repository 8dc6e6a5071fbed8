package api

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A coordinator whose id or address cannot be one's is not even looked for.
func TestAddMemberChecks(t *testing.T) {
	for body, says := range map[string]string{
		`{"id":"c/d","http":"h:7100"}`:     "letters, digits",
		`{"id":"","http":"h:7100"}`:        "letters, digits",
		`{"id":"d","http":"0.0.0.0:7100"}`: "all interfaces",
		`{"id":"d","http":"h"}`:            "HOST:PORT",
	} {
		_, err := new(Server).addMember(httptest.NewRequest("POST", "/v1/members", strings.NewReader(body)))
		if err == nil || statusOf(err) != 400 || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
