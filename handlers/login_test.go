package handlers_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/login"
	"switchyard/internal/logintest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// loginSite is a gateway with a login through a provider, on a socket, and its log.
type loginSite struct {
	*gatewaytest.Gateway
	provider *logintest.Provider
	server   *httptest.Server
	log      *waittest.Log
}

func newLoginSite(t *testing.T, change ...func(*handlers.Gateway)) *loginSite {
	t.Helper()
	provider := logintest.New(t)
	s := &loginSite{provider: provider, log: &waittest.Log{}}
	h := handlers.Gateway{Login: login.New(config.Login{
		Issuer: provider.Issuer, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, RolesClaim: "groups",
		Roles: domain.RoleLists{Viewers: []string{"staff"}, Operators: []string{"jo@example.com"}, Admins: []string{"platform"}},
	}, logintest.Spend())}
	for _, c := range change {
		c(&h)
	}
	s.Gateway = gatewaytest.New(t, service.Options{Log: slog.New(slog.NewTextHandler(s.log, nil))}, h)
	s.server = s.Serve(t)
	if _, err := s.Projects.Add(t.Context(), "hidden-project", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, secret := range provider.Secrets() {
			if secret != "" && strings.Contains(s.log.String(), secret) {
				t.Errorf("the log holds %q", secret)
			}
		}
	})
	return s
}

// newBrowser returns a client that keeps cookies and follows redirects, like a browser without scripts.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// get returns the status, address and body of the page at which a browser ends.
func get(t *testing.T, browser *http.Client, address string) (int, *url.URL, string) {
	t.Helper()
	answer, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Request.URL, string(body)
}

// callback goes through the provider's pages, and returns the callback address without opening it.
func (s *loginSite) callback(t *testing.T, browser *http.Client, start string) string {
	t.Helper()
	var ends string
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/login/callback" {
			ends = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	status, at, body := get(t, browser, s.server.URL+start)
	browser.CheckRedirect = nil
	if ends == "" {
		t.Fatalf("the login ends with %d at %s: %s", status, at, body)
	}
	return ends
}

func TestALoginThroughAProviderLeadsBack(t *testing.T) {
	s := newLoginSite(t)
	browser := newBrowser(t)
	status, at, body := get(t, browser, s.server.URL+"/agents?x=1")
	if status != 200 || at.Path != "/login" || !strings.Contains(body, `href="/login/start?next=%2Fagents%3Fx%3D1"`) || strings.Contains(body, "hidden-project") {
		t.Fatalf("before: %d at %s: %s", status, at, body)
	}
	status, at, _ = get(t, browser, s.server.URL+"/login/start?next=%2Fagents%3Fx%3D1")
	if status != 200 || at.RequestURI() != "/agents?x=1" {
		t.Errorf("after: %d at %s", status, at)
	}
	sessions := s.Access.Sessions()
	if len(sessions) != 1 || sessions[0].Who != "jo@example.com" || sessions[0].Via != domain.ViaLogin || sessions[0].Role != domain.RoleOperator {
		t.Errorf("sessions %+v", sessions)
	}
	if status, _, _ := get(t, browser, s.server.URL+"/bot-config"); status != 403 {
		t.Errorf("an operator reads the bot's configuration: %d", status)
	}
	if status, at, _ = get(t, browser, s.server.URL+"/login?next=/events"); at.Path != "/events" {
		t.Errorf("the login with a session: %d at %s", status, at)
	}
	answer, err := browser.Post(s.server.URL+"/logout", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if status, at, _ = get(t, browser, s.server.URL+"/agents"); at.Path != "/login" || len(s.Access.Sessions()) > 0 {
		t.Errorf("after the logout: %d at %s, sessions %v", status, at, s.Access.Sessions())
	}
}

func TestALoginLeadsToThisSiteOnly(t *testing.T) {
	s := newLoginSite(t)
	for _, next := range []string{"https://evil.test/", "//evil.test/", "/\\evil.test", "/login", "/login/start", "/login/callback?code=a", "javascript:alert(1)", "/" + strings.Repeat("a", 10000)} {
		if status, at, _ := get(t, newBrowser(t), s.server.URL+"/login/start?next="+url.QueryEscape(next)); status != 200 || at.String() != s.server.URL+"/" {
			t.Errorf("%.20q: %d at %s", next, status, at)
		}
	}
}

func TestOnlyTheBrowserThatBeganALoginCanFinishIt(t *testing.T) {
	s := newLoginSite(t)
	mine, other := newBrowser(t), newBrowser(t)
	ends := s.callback(t, mine, "/login/start")
	s.callback(t, other, "/login/start")
	for who, browser := range map[string]*http.Client{"another": newBrowser(t), "one with a login of its own": other} {
		before := s.provider.Requests("/token")
		status, _, body := get(t, browser, ends)
		if status != 400 || !strings.Contains(body, "was not started in this browser") || s.provider.Requests("/token") != before {
			t.Errorf("%s: %d, %s", who, status, body)
		}
	}
	if status, at, _ := get(t, mine, ends); status != 200 || at.Path != "/" {
		t.Errorf("the right one: %d at %s", status, at)
	}
	if n := len(s.Access.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestACallbackCannotBeReplayed(t *testing.T) {
	s := newLoginSite(t)
	browser := newBrowser(t)
	ends := s.callback(t, browser, "/login/start")
	address, _ := url.Parse(s.server.URL)
	stolen := browser.Jar.Cookies(address)
	if status, _, _ := get(t, browser, ends); status != 200 {
		t.Fatalf("status %d", status)
	}
	if status, _, _ := get(t, browser, ends); status != 400 {
		t.Errorf("again in the same browser: %d", status)
	}
	thief := newBrowser(t)
	thief.Jar.SetCookies(address, stolen)
	if status, _, body := get(t, thief, ends); status != 400 || strings.Contains(body, ends) || strings.Contains(body, "canary") {
		t.Errorf("with a stolen cookie: %d, %s", status, body)
	}
	if n := len(s.Access.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestSeveralTabsLogInAtOnce(t *testing.T) {
	s := newLoginSite(t)
	browser := newBrowser(t)
	paths := []string{"/agents", "/events", "/projects", "/search"}
	for i, path := range paths {
		paths[i] = path + "?q=" + strings.Repeat("&", 280)
	}
	var ends []string
	for _, path := range paths {
		ends = append(ends, s.callback(t, browser, "/login/start?next="+url.QueryEscape(path)))
	}
	for i, path := range paths {
		if _, at, _ := get(t, browser, ends[i]); at.RequestURI() != path {
			t.Errorf("tab %d ends at %s", i+1, at)
		}
	}
}

// TestTabsThatBeginALoginAtTheSameTime do not know each other's cookies.
func TestTabsThatBeginALoginAtTheSameTime(t *testing.T) {
	s := newLoginSite(t)
	browser := newBrowser(t)
	address, _ := url.Parse(s.server.URL)
	var ends []string
	for range 4 {
		tab := newBrowser(t)
		ends = append(ends, s.callback(t, tab, "/login/start?next=/agents"))
		browser.Jar.SetCookies(address, tab.Jar.Cookies(address))
	}
	for _, end := range ends {
		if status, at, _ := get(t, browser, end); status != 200 || at.Path != "/agents" {
			t.Errorf("%d at %s", status, at)
		}
	}
}

// TestABrowserKeepsFewLogins: those that are never finished do not fill its cookies.
func TestABrowserKeepsFewLogins(t *testing.T) {
	s := newLoginSite(t)
	browser := newBrowser(t)
	address, _ := url.Parse(s.server.URL)
	for range 20 {
		s.callback(t, browser, "/login/start")
	}
	if n := len(browser.Jar.Cookies(address)); n > 8 {
		t.Errorf("%d cookies", n)
	}
}

func TestAUserWithoutARoleGetsAPageThatSaysSo(t *testing.T) {
	s := newLoginSite(t)
	for what, claims := range map[string]map[string]any{
		"unverified": {"sub": "1", "email": "jo@example.com", "email_verified": false},
		"lost":       {"sub": "1", "groups": []string{}},
	} {
		s.provider.User(claims)
		status, _, body := get(t, newBrowser(t), s.server.URL+"/login/start")
		if status != 403 || !strings.Contains(body, "may not use this gateway") || !strings.Contains(body, "Log in with ") || strings.Contains(body, "hidden-project") {
			t.Errorf("%s: %d, %s", what, status, body)
		}
	}
	if n := len(s.Access.Sessions()); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestAProviderThatFailsIsAPageWithWords(t *testing.T) {
	s := newLoginSite(t)
	s.provider.Answer("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	status, _, body := get(t, newBrowser(t), s.server.URL+"/login/start?next=/agents")
	if status != 502 || !strings.Contains(body, "<html") || !strings.Contains(body, "Try again in a minute") || !strings.Contains(body, ">Token<") || !strings.Contains(body, "next=%2Fagents") {
		t.Errorf("%d, %s", status, body)
	}
	s.provider.Answer("/.well-known/openid-configuration", nil)
	if status, at, _ := get(t, newBrowser(t), s.server.URL+"/login/start?next=/agents"); status != 200 || at.Path != "/agents" {
		t.Errorf("once it is well: %d at %s", status, at)
	}
	s.provider.Change(func(claims map[string]any) { claims["nonce"] = "another" })
	if status, _, body := get(t, newBrowser(t), s.server.URL+"/login/start"); status != 502 || !strings.Contains(body, "cannot be trusted") {
		t.Errorf("a wrong nonce: %d, %s", status, body)
	}
	s.provider.Change(nil)
	browser := newBrowser(t)
	ends, _ := url.Parse(s.callback(t, browser, "/login/start"))
	query := ends.Query()
	query.Del("code")
	query.Set("error", "access_denied")
	query.Set("error_description", "<b>no</b>")
	ends.RawQuery = query.Encode()
	if status, _, body := get(t, browser, ends.String()); status != 400 || !strings.Contains(body, "access_denied, &lt;b&gt;no") {
		t.Errorf("denied: %d, %s", status, body)
	}
}

// People who cannot reach the provider can still use tokens.
func TestTokensStillWorkBesideALogin(t *testing.T) {
	s := newLoginSite(t, func(h *handlers.Gateway) { h.AdminToken = gatewaytest.AdminToken })
	_, token := gatewaytest.NamedToken(t, s.Service, "ci", domain.RoleViewer)
	for _, bearer := range []string{gatewaytest.AdminToken, token} {
		r, _ := http.NewRequest("GET", s.server.URL+"/api/gateway", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != 200 {
			t.Errorf("%s: %d", bearer, answer.StatusCode)
		}
	}
}

// With only a login set up, named tokens work, and nobody has access without authentication.
func TestALoginClosesTheGateway(t *testing.T) {
	s := newLoginSite(t)
	for _, path := range []string{"/api/gateway", "/mcp", "/metrics", "/gateway/agents"} {
		if status, _, _ := get(t, newBrowser(t), s.server.URL+path); status != 401 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _ := get(t, newBrowser(t), s.server.URL+"/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
}

func TestALoginIsForPeopleToGoToOnly(t *testing.T) {
	s := newLoginSite(t)
	for path, status := range map[string]int{"/login/start": 403, "/login/callback?code=a&state=b": 403} {
		r, _ := http.NewRequest("GET", s.server.URL+path, nil)
		r.Header.Set("Sec-Fetch-Dest", "image")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != status {
			t.Errorf("%s as a picture: %d", path, answer.StatusCode)
		}
		head, err := http.Head(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if head.Body.Close(); head.StatusCode != 405 {
			t.Errorf("HEAD %s: %d", path, head.StatusCode)
		}
	}
}

func TestTheLoginBeginsAtThePublicAddress(t *testing.T) {
	s := newLoginSite(t, func(h *handlers.Gateway) {
		h.PublicURL, h.AllowHosts = "https://yard.example/", []string{"yard.example"}
	})
	_, _, body := get(t, newBrowser(t), s.server.URL+"/login?next=/agents")
	if !strings.Contains(body, `href="https://yard.example/login/start?next=%2Fagents"`) {
		t.Errorf("the link of another host: %s", body)
	}
	r := httptest.NewRequest("GET", "https://yard.example/login/start", nil)
	w := httptest.NewRecorder()
	s.HTTP.Handler().ServeHTTP(w, r)
	to, err := w.Result().Location()
	if err != nil || to.Query().Get("redirect_uri") != "https://yard.example/login/callback" {
		t.Fatalf("%d to %v, %v", w.Code, to, err)
	}
	cookie := w.Result().Cookies()[0]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || !strings.HasPrefix(cookie.Name, "__Host-") || cookie.MaxAge != 600 {
		t.Errorf("cookie %+v", cookie)
	}
}

func TestWithoutAProviderThereIsNoLoginToStart(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	for _, path := range []string{"/login/start", "/login/callback?code=a&state=b"} {
		if answer := g.send(here, "GET", path, ""); answer.StatusCode != 303 || answer.Header.Get("Location") != "/login" {
			t.Errorf("%s: %d to %s", path, answer.StatusCode, answer.Header.Get("Location"))
		}
	}
	if body := bodyOf(g.send(here, "GET", "/login", "")); strings.Contains(body, "/login/start") {
		t.Errorf("the login offers what there is not: %s", body)
	}
}
