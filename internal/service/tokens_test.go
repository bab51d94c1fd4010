package service_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestJoinTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		ctx := t.Context()
		token := func() (domain.Secret, domain.JoinToken) {
			secret, tok, err := g.Agents.CreateJoinToken(ctx, "")
			if err != nil || !strings.HasPrefix(secret.Reveal(), "swj_") || len(secret.Reveal()) < len("swj_")+32 {
				t.Fatalf("token %q, %v", secret.Reveal(), err)
			}
			return secret, tok
		}
		join := func(secret domain.Secret) error {
			_, _, err := g.Agents.Join(ctx, secret, nil, "")
			return err
		}
		used, _ := token()
		if err := join(used); err != nil {
			t.Fatal(err)
		}
		revoked, revokedToken := token()
		if err := g.Agents.RevokeJoinToken(ctx, revokedToken.Hash); err != nil {
			t.Fatal(err)
		}
		expired, _ := token()
		time.Sleep(time.Hour)
		fresh, freshToken := token()
		texts := map[string]bool{}
		for name, secret := range map[string]domain.Secret{"used": used, "revoked": revoked, "expired": expired, "unknown": "swj_x", "empty": ""} {
			err := join(secret)
			if domain.CodeOf(err) != domain.Unauthorized {
				t.Errorf("%s token: %v, want unauthorized", name, err)
			}
			texts[domain.MessageOf(err)] = true
		}
		if len(texts) != 1 {
			t.Errorf("the refusals differ: %v", texts)
		}
		for _, label := range []string{"", strings.Repeat("ä", 101), "a\nb", " ", "\u200b"} {
			if _, _, err := g.Agents.Join(ctx, fresh, &label, ""); domain.CodeOf(err) != domain.Invalid {
				t.Errorf("label %q: %v, want invalid", label, err)
			}
		}
		if unused, err := g.Agents.UnusedJoinTokens(ctx); err != nil || len(unused) != 1 || unused[0] != freshToken {
			t.Errorf("unused are %+v, %v; a refused label must not spend the token", unused, err)
		}
		a, secret, err := g.Agents.Join(ctx, fresh, nil, "")
		if err != nil || a.Label != a.ID || a.State != domain.AgentIdle || a.Project != "" {
			t.Errorf("joined as %+v, %v", a, err)
		}
		if tok, err := g.Agents.JoinToken(ctx, freshToken.Hash); err != nil || tok.UsedBy != a.ID {
			t.Errorf("the token is %+v, %v", tok, err)
		}
		other := g.join("other")
		for _, c := range []struct {
			id     string
			secret domain.Secret
			want   domain.Code
		}{{a.ID, secret, ""}, {other.ID, secret, domain.Unauthorized}, {a.ID, fresh, domain.Unauthorized}, {"nobody", secret, domain.Unauthorized}, {"nobody", "", domain.Unauthorized}, {a.ID, "", domain.Unauthorized}} {
			if err := g.Agents.CheckSecret(t.Context(), c.id, c.secret); domain.CodeOf(err) != c.want {
				t.Errorf("secret %.8s for %s: %v, want %q", c.secret.Reveal(), c.id, err, c.want)
			}
		}
	})
}

func TestOutlivedTokensAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		_, tok, err := g.Agents.CreateJoinToken(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7*24*time.Hour + 55*time.Minute)
		stop := g.run()
		defer stop()
		time.Sleep(3 * time.Minute)
		if _, err := g.Agents.JoinToken(t.Context(), tok.Hash); err != nil {
			t.Errorf("forgotten too early: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := g.Agents.JoinToken(t.Context(), tok.Hash); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("not forgotten: %v", err)
		}
	})
}

// TestTheOldestOf200UnusedJoinTokensEnds when there is one more. Used ones do not count.
func TestTheOldestOf200UnusedJoinTokensEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		var tokens []domain.Secret
		join := func(n int) error {
			_, _, err := g.Agents.Join(t.Context(), tokens[n], nil, "")
			return err
		}
		for n := range 203 {
			token, _, err := g.Agents.CreateJoinToken(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if tokens = append(tokens, token); n == 2 {
				if err := join(n); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
		}
		unused, err := g.Agents.UnusedJoinTokens(t.Context())
		if err != nil || len(unused) != 200 {
			t.Errorf("%d tokens, %v", len(unused), err)
		}
		for n, want := range map[int]domain.Code{0: domain.Unauthorized, 1: domain.Unauthorized, 3: "", 202: ""} {
			if err := join(n); domain.CodeOf(err) != want {
				t.Errorf("token %d: %v", n, err)
			}
		}
	})
}
