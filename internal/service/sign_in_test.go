package service_test

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

func TestASignInIsCarriedThroughWhenTheBrowserLeaves(t *testing.T) {
	provider := signintest.New(t)
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := service.New(t.Context(), service.Options{
		Store: db, Log: log,
		Credentials: signin.NewFile(filepath.Join(t.TempDir(), "credentials.json")),
		Provider: signin.New(config.SignIn{
			AuthorizeURL: provider.AuthorizeURL, TokenURL: provider.TokenURL, ClientID: signintest.ClientID, Product: signintest.Product,
		}, nil, log),
	})
	if err != nil {
		t.Fatal(err)
	}
	address, err := s.SignIn.Start(t.Context(), "http://localhost:3000/callback")
	if err != nil {
		t.Fatal(err)
	}
	callback, err := url.Parse(provider.Approve(t, address))
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	result := s.SignIn.Finish(left, signin.ParseCallback(callback.RawQuery))
	if result.Outcome != domain.SignInDone || !s.SignIn.Status().Authenticated {
		t.Errorf("result = %+v, want the code to be used as long as it can be", result)
	}
}

func TestADenialHasTheTextAndTheCode(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := service.New(t.Context(), service.Options{Store: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"error=access_denied&error_description=The+person+said+no": "The person said no (access_denied)",
		"error=access_denied":        "Unknown error (access_denied)",
		"error=&error_description=d": "d",
		"error=":                     "Unknown error",
	} {
		result := s.SignIn.Finish(t.Context(), signin.ParseCallback(query))
		if result.Outcome != domain.SignInDenied || result.Detail != want {
			t.Errorf("%s: %+v, want %q", query, result, want)
		}
	}
}
