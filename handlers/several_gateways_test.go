package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
)

// twoGateways are the gateways "one", which answers, and "two".
type twoGateways struct{}

func (twoGateways) LiveGateways(context.Context) ([]domain.LiveGateway, error) {
	began := time.Now().Add(-time.Hour)
	return []domain.LiveGateway{
		{ID: "AAAAAAAA", Name: "one", Since: began, Leads: true, Asked: true},
		{ID: "BBBBBBBB", Name: "two", Since: began},
	}, nil
}

// TestGatewaysAreShownWhereThereAreSeveral, on the Access page and in the metrics.
func TestGatewaysAreShownWhereThereAreSeveral(t *testing.T) {
	get := func(o service.Options, path string) string {
		w := httptest.NewRecorder()
		gatewaytest.New(t, o, handlers.Gateway{}).HTTP.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
		return w.Body.String()
	}
	several := service.Options{Gateways: twoGateways{}}
	page := get(several, "/access")
	for _, want := range []string{"Gateways", "one", "two", "leads", "answers"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(page, "serves this page") != 1 {
		t.Error("the page does not say which gateway answers it")
	}
	if metrics := get(several, "/metrics"); !strings.Contains(metrics, "\nswitchyard_gateways 2\n") || !strings.Contains(metrics, "\nswitchyard_leader 1\n") {
		t.Error("the metrics lack the gateways")
	}
	if strings.Contains(get(service.Options{}, "/access"), "Gateways") || strings.Contains(get(service.Options{}, "/metrics"), "switchyard_gateways") {
		t.Error("a gateway that is alone shows several")
	}
}

// sharedFlows are the flows of several gateways, some of which cannot reach them at times.
type sharedFlows struct {
	flows map[string]domain.SignInFlow
	away  bool
}

func (f *sharedFlows) AddSignInFlow(_ context.Context, state string, flow domain.SignInFlow) error {
	if f.away {
		return domain.Errorf(domain.Unavailable, "the database cannot be reached")
	}
	f.flows[state] = flow
	return nil
}

func (f *sharedFlows) TakeSignInFlow(_ context.Context, state string) (domain.SignInFlow, error) {
	if f.away {
		return domain.SignInFlow{}, domain.Errorf(domain.Unavailable, "the database cannot be reached")
	}
	flow, ok := f.flows[state]
	if !ok {
		return flow, domain.Errorf(domain.NotFound, "not found")
	}
	delete(f.flows, state)
	return flow, nil
}

// TestASignInMayEndOnAnotherGateway: that gateway writes its credentials file, and says so.
func TestASignInMayEndOnAnotherGateway(t *testing.T) {
	provider, flows := signintest.New(t), &sharedFlows{flows: map[string]domain.SignInFlow{}}
	var gateways [2]*httptest.Server
	var files [2]string
	for i := range gateways {
		files[i] = filepath.Join(t.TempDir(), "credentials.json")
		gateways[i] = gatewaytest.New(t, service.Options{Credentials: signin.NewFile(files[i]), Provider: signin.New(config.SignIn{
			AuthorizeURL: provider.AuthorizeURL, TokenURL: provider.TokenURL, ClientID: signintest.ClientID, Product: signintest.Product,
		}, flows, nil)}, handlers.Gateway{}).Serve(t)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(address string) *http.Response {
		answer, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	begun := get(gateways[0].URL + "/oauth/authorize")
	callback, err := url.Parse(provider.Approve(t, begun.Header.Get("Location")))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		gateway int
		away    bool
		want    int
	}{{1, true, 503}, {1, false, 200}, {0, false, 400}, {1, false, 400}} {
		flows.away = step.away
		if got := get(gateways[step.gateway].URL + "/callback?" + callback.RawQuery).StatusCode; got != step.want {
			t.Errorf("%+v: %d", step, got)
		}
	}
	flows.away = true
	if got := get(gateways[0].URL + "/oauth/authorize").StatusCode; got != 503 {
		t.Errorf("beginning without the database: %d", got)
	}
	for i, want := range []bool{false, true} {
		if _, err := os.Stat(files[i]); (err == nil) != want {
			t.Errorf("gateway %d: the credentials file: %v", i, err)
		}
	}
}
