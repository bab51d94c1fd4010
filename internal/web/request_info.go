package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"

	"switchyard/internal/domain"
)

// RequestInfo is what becomes known of a request while it is served.
type RequestInfo struct {
	// ID is what the answer carries in X-Request-Id and what the log names, "" where requests get none.
	ID string
	// Auth is how the caller has identified itself.
	Auth AuthMethod
	// Role is what the caller may do, "" where that was not asked.
	Role domain.Role
}

// AuthMethod is how a caller has shown that it may do what it asks for.
type AuthMethod string

const (
	AuthNone        AuthMethod = ""             // not at all: only what is public, or an agent's own, can be asked for
	AuthNotRequired AuthMethod = "not required" // no admin token is set: everyone is the administrator
	AuthToken       AuthMethod = "token"
	AuthSession     AuthMethod = "session"
	AuthAgent       AuthMethod = "agent" // by the secret of the agent that is asked about
)

type requestInfoKey struct{}

// InfoOf returns the info of the request with this context; an empty one where there is none.
func InfoOf(ctx context.Context) *RequestInfo {
	if info, ok := ctx.Value(requestInfoKey{}).(*RequestInfo); ok {
		return info
	}
	return &RequestInfo{}
}

// RequestID is the id of the request with this context.
func RequestID(ctx context.Context) string { return InfoOf(ctx).ID }

// WithRequestInfo gives each request its info, with an id that no other process gives.
func WithRequestInfo(next http.Handler) http.Handler {
	process, count := rand.Text()[:10]+"-", atomic.Uint64{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &RequestInfo{ID: process + strconv.FormatUint(count.Add(1), 10)}
		w.Header().Set("X-Request-Id", info.ID)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, info)))
	})
}
