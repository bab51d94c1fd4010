package signin_test

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
)

const redirectURI = "http://localhost:3000/callback"

func settings(p *signintest.Provider) config.SignIn {
	return config.SignIn{AuthorizeURL: p.AuthorizeURL, TokenURL: p.TokenURL, ClientID: signintest.ClientID, Product: signintest.Product}
}

func newClient(p *signintest.Provider) *signin.Client {
	return signin.New(settings(p), nil, slog.New(slog.DiscardHandler))
}

// begin begins a sign-in and returns the address to which to send the browser.
func begin(t *testing.T, c *signin.Client) string {
	t.Helper()
	address, err := c.Begin(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// queryOf returns code and state of a callback address.
func queryOf(t *testing.T, address string) (code, state string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("code"), u.Query().Get("state")
}

func wantOutcome(t *testing.T, err error, outcome domain.SignInOutcome) {
	t.Helper()
	failure, ok := err.(domain.SignInResult)
	if !ok || failure.Outcome != outcome {
		t.Errorf("error = %v, want the outcome %q", err, outcome)
	}
}

func TestTheAuthorizeAddressHasTheParametersInOrder(t *testing.T) {
	const rest = `code=true&client_id=client-4711&response_type=code&redirect_uri=http%3A%2F%2Flocalhost%3A3000%2Fcallback` +
		`&scope=user%3Ainference%20user%3Aprofile%20user%3Amcp_servers%20user%3Asessions%3Aexample_code%20user%3Afile_upload` +
		`&code_challenge=CHALLENGE&code_challenge_method=S256&state=STATE`
	for configured, want := range map[string]string{
		"https://id.test/authorize":              "https://id.test/authorize?" + rest,
		"https://id.test/authorize?":             "https://id.test/authorize?" + rest,
		"https://id.test/authorize?tenant=a%20b": "https://id.test/authorize?tenant=a%20b&" + rest,
		"https://id.test/authorize?tenant=a&":    "https://id.test/authorize?tenant=a&" + rest,
		"https://id.test/authorize#top":          "https://id.test/authorize?" + rest,
	} {
		c := signin.New(config.SignIn{AuthorizeURL: configured, ClientID: signintest.ClientID, Product: signintest.Product}, nil, slog.New(slog.DiscardHandler))
		got := begin(t, c)
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, "CHALLENGE", u.Query().Get("code_challenge"), 1)
		want = strings.Replace(want, "STATE", u.Query().Get("state"), 1)
		if got != want {
			t.Errorf("address for %s =\n%s, want\n%s", configured, got, want)
		}
	}
}

func TestStatesAreDistinctAndUseEveryLetterAlike(t *testing.T) {
	c := newClient(signintest.New(t))
	const n = 10_000
	seen, letters := map[string]bool{}, map[rune]int{}
	for range n {
		_, state := queryOf(t, begin(t, c))
		if len(state) != 32 {
			t.Fatalf("state %q has %d characters", state, len(state))
		}
		seen[state] = true
		for _, letter := range state {
			letters[letter]++
		}
	}
	if len(seen) != n {
		t.Errorf("%d distinct states of %d", len(seen), n)
	}
	if len(letters) != 62 {
		t.Errorf("%d letters are used, want 62", len(letters))
	}
	for letter, count := range letters { // the standard deviation is 1.4 %; a modulo of 256 would be off by 21 %
		if mean := n * 32 / 62; count < mean*9/10 || count > mean*11/10 {
			t.Errorf("%c comes up %d times, the mean is %d", letter, count, mean)
		}
	}
}

func TestAStateWorksOnceWhateverBecomesOfTheExchange(t *testing.T) {
	p := signintest.New(t)
	c := newClient(p)
	_, state := queryOf(t, p.Approve(t, begin(t, c)))
	_, err := c.Redeem(t.Context(), "a wrong code", state)
	wantOutcome(t, err, domain.SignInRefused)
	_, err = c.Redeem(t.Context(), "a wrong code", state)
	wantOutcome(t, err, domain.SignInUnknownState)
	if p.Exchanges() != 1 {
		t.Errorf("%d exchanges, want 1", p.Exchanges())
	}
}

func TestManyWaitingFlowsAreLoggedOnceAndAllKept(t *testing.T) {
	var log bytes.Buffer
	p := signintest.New(t)
	c := signin.New(settings(p), nil, slog.New(slog.NewTextHandler(&log, nil)))
	first := p.Approve(t, begin(t, c))
	for range 65_535 {
		begin(t, c)
	}
	if log.Len() > 0 {
		t.Errorf("logged with 65,536 flows: %s", log.String())
	}
	begin(t, c)
	begin(t, c)
	code, state := queryOf(t, first)
	if _, err := c.Redeem(t.Context(), code, state); err != nil {
		t.Errorf("the first flow: %v", err)
	}
	begin(t, c)
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines logged, want 1:\n%s", lines, log.String())
	}
	for _, secret := range append(p.Secrets(), state) {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds the secret %q", secret)
		}
	}
}
