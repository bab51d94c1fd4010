//go:build stress

package stress

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// operator makes changes while the gateway is repeatedly killed, and checks that confirmed ones persist.
type operator struct {
	t        *testing.T
	gateway  string
	projects []string

	switches, joins int
	agents          []joined
}

type joined struct{ token, id, secret string }

// run works until ctx ends.
func (o *operator) run(ctx context.Context) {
	active, attempt := "", ""
	for i := 0; ctx.Err() == nil; i++ {
		pause(ctx, 100*time.Millisecond)
		attempt = o.projects[i%len(o.projects)]
		status, err := call(ctx, "POST", o.gateway+"/api/gateway/switch", "", map[string]string{"project": attempt}, nil)
		if err == nil && status == http.StatusOK {
			active = attempt
			o.switches++
		} else if err == nil {
			o.t.Errorf("switch answers %d", status)
		}
		var registry struct {
			Active string `json:"active"`
		}
		for ctx.Err() == nil {
			if _, err := call(ctx, "GET", o.gateway+"/api/gateway", "", nil, &registry); err == nil {
				break
			}
			pause(ctx, 20*time.Millisecond)
		}
		if ctx.Err() == nil && active != "" && registry.Active != active && registry.Active != attempt {
			o.t.Errorf("%q is active, but the switch to %q was acknowledged, then tried to %q", registry.Active, active, attempt)
		}
		if ctx.Err() == nil {
			active = registry.Active
		}
		if i%5 == 0 {
			o.join(ctx)
		}
	}
}

// join redeems a token; the connection may break anywhere.
func (o *operator) join(ctx context.Context) {
	var token struct{ Token string }
	if _, err := call(ctx, "POST", o.gateway+"/gateway/tokens", "", nil, &token); err != nil || token.Token == "" {
		return
	}
	var reply struct {
		Agent  struct{ ID string }
		Secret string
	}
	status, err := call(ctx, "POST", o.gateway+"/gateway/agents", "", map[string]string{"token": token.Token}, &reply)
	switch {
	case err != nil:
	case status != http.StatusCreated:
		o.t.Errorf("a token that was acknowledged is answered %d", status)
	default:
		o.joins++
		o.agents = append(o.agents, joined{token.Token, reply.Agent.ID, reply.Secret})
	}
}

// check checks that every confirmed agent exists, and that its token is used up.
func (o *operator) check() {
	for _, a := range o.agents {
		url := fmt.Sprintf("%s/gateway/agents/%s/heartbeat", o.gateway, a.id)
		if status, err := call(o.t.Context(), "POST", url, a.secret, map[string]string{}, nil); err != nil || status != http.StatusOK {
			o.t.Errorf("heartbeat of %s: %d, %v", a.id, status, err)
		}
		status, err := call(o.t.Context(), "POST", o.gateway+"/gateway/agents", "", map[string]string{"token": a.token}, nil)
		if err != nil || status != http.StatusUnauthorized {
			o.t.Errorf("a token can be used again: %d, %v", status, err)
		}
	}
}
