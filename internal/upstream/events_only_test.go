package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

func TestServerWithAFeedButNoPipelineHasEventsOnly(t *testing.T) {
	events := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/events" {
			return false
		}
		fmt.Fprint(w, `[{"type":"x","timestamp_ms":1}]`)
		return true
	}
	client := newClient(t)
	var observed []error
	client.Observe = func(_, _ string, err error) { observed = append(observed, err) }
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !events(w, r) {
			http.NotFound(w, r)
		}
	})
	first, err := client.Pipeline(t.Context(), project, nil)
	if err != nil || !first.EventsOnly || string(first.Raw) != "[]" || first.Stages == nil || len(first.Stages) != 0 {
		t.Errorf("%+v, %v", first, err)
	}
	if again, err := client.Pipeline(t.Context(), project, first); again != first || err != nil {
		t.Errorf("then %+v, %v", again, err)
	}
	if fmt.Sprint(observed) != "[<nil> <nil>]" {
		t.Errorf("observed %v", observed)
	}
	for name, pipeline := range map[string]http.HandlerFunc{
		"another form": body(`{"columns":[{"title":"Current"}]}`),
		"a page":       body(`<!doctype html>`),
		"a failure":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
	} {
		project := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !events(w, r) {
				pipeline(w, r)
			}
		})
		if answer, err := newClient(t).Pipeline(t.Context(), project, nil); answer != nil || domain.CodeOf(err) != domain.BadGateway {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	t.Run("a server that gets a pipeline has one", func(t *testing.T) {
		known := &domain.PipelineAnswer{EventsOnly: true, Raw: []byte("[]")}
		answer, err := newClient(t).Pipeline(t.Context(), serve(t, body(board)), known)
		if err != nil || answer.EventsOnly || string(answer.Raw) != stages {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

func TestReasonOfAServerThatIsUnavailableIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"work directory /srv/alpha is gone\n": "answers with HTTP status 503: work directory /srv/alpha is gone",
		"a\x1b[31m\u202eb\nsecond line":       "answers with HTTP status 503: a[31mb",
		"":                                    "answers with HTTP status 503",
		strings.Repeat("x", 10_000):           "answers with HTTP status 503: " + strings.Repeat("x", 300),
	} {
		project := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusServiceUnavailable) })
		if _, err := newClient(t).Pipeline(t.Context(), project, nil); domain.MessageOf(err) != want {
			t.Errorf("%q: %q, want %q", text, domain.MessageOf(err), want)
		}
	}
	project := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<html>")
	})
	if _, err := newClient(t).Pipeline(t.Context(), project, nil); domain.MessageOf(err) != "answers with HTTP status 503" {
		t.Error(domain.MessageOf(err))
	}
}
