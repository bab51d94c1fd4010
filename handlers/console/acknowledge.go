package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/views"
)

// workBegins is the hour at which alerts acknowledged until tomorrow are shown again, in the gateway's time zone.
const workBegins = 8

func (c *Console) Acknowledge(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	var err error
	var duration time.Duration
	said := "Acknowledged until it changes."
	switch fields.Get("for") {
	case "":
	case views.ForFourHours:
		duration, said = 4*time.Hour, "Acknowledged for 4 hours."
	case views.ForToday:
		now := clock.Now()
		duration, said = time.Date(now.Year(), now.Month(), now.Day()+1, workBegins, 0, 0, 0, now.Location()).Sub(now),
			"Acknowledged until tomorrow."
	default:
		return domain.Errorf(domain.Invalid, "The form does not say for how long.")
	}
	key := fields.Get("key")
	if key == views.AllStuck {
		var n int
		var at time.Time
		if n, at, err = c.service.Alerts.AcknowledgeStuck(r.Context(), duration); err == nil {
			said = domain.Thousands(n) + " stuck stories acknowledged" + strings.TrimPrefix(said, "Acknowledged")
			key += strconv.FormatInt(at.UnixMilli(), 10)
		}
	} else {
		err = c.service.Alerts.Acknowledge(r.Context(), key, duration)
	}
	notice := views.Notice{Text: said, Undo: views.Undo{URL: views.ReopenURL, Name: "key", Value: key}}
	return c.done(w, r, localPath(fields.Get("next")), notice, err, alertGone)
}

func (c *Console) Reopen(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	var err error
	key, said := fields.Get("key"), "It needs attention again."
	if text, together := strings.CutPrefix(key, views.AllStuck); together {
		ms, parseErr := strconv.ParseInt(text, 10, 64)
		if parseErr != nil {
			return domain.Errorf(domain.Invalid, "key: must say when they were acknowledged")
		}
		err, said = c.service.Alerts.ReopenStuck(r.Context(), time.UnixMilli(ms)), "They need attention again."
	} else {
		err = c.service.Alerts.Reopen(r.Context(), key)
	}
	return c.done(w, r, localPath(fields.Get("next")), views.Notice{Text: said}, err, alertGone)
}

const alertGone = "There is nothing to acknowledge any more: this trouble is over."
