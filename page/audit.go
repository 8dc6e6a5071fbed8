package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// ages are the values of the filter for the time of audit records.
var ages = []struct {
	Value, Title string
	duration     time.Duration
}{
	{"", "any time", 0}, {"1h", "the last hour", time.Hour}, {"24h", "the last day", 24 * time.Hour},
	{"7d", "the last 7 days", 7 * 24 * time.Hour}, {"30d", "the last 30 days", 30 * 24 * time.Hour},
}

// auditView lists who asked for what, the newest first. The first part is live.
func auditView(v *visit) (*view, error) {
	given := v.URL.Query()
	data := struct {
		list
		Records []protocol.AuditRecord
		Ages    any
	}{Ages: ages}
	data.Query = make(url.Values)
	query := url.Values{"limit": {strconv.Itoa(pageOf + 1)}} // one more, which says whether others follow
	for _, name := range []string{"caller", "refused", "after"} {
		if text := given.Get(name); text != "" {
			query.Set(name, text)
			data.Query.Set(name, text)
		}
	}
	if text := given.Get("since"); text != "" {
		data.Query.Set("since", text)
		known := false
		for _, age := range ages {
			if age.Value == text {
				query.Set("since", strconv.FormatInt(time.Now().Add(-age.duration).Unix(), 10))
				known = true
			}
		}
		if !known {
			return nil, &Error{Status: http.StatusBadRequest,
				Text: fmt.Sprintf("since: want 1h, 24h, 7d or 30d, got %.40q.", text)}
		}
	}
	data.Filtered = len(data.Query) > 0
	if err := v.get("/v1/audit", query, &data.Records); err != nil {
		return nil, err
	}
	if len(data.Records) > pageOf {
		data.Records = data.Records[:pageOf]
		data.follow(strconv.FormatUint(data.Records[pageOf-1].Number, 10))
	}
	return &view{Title: "Audit records", Section: "audit", Template: "audit", Data: &data,
		Still: given.Get("after") != ""}, nil
}
