package handlers

import (
	"net/http"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// ProxyLogin names the headers in which trusted proxies name the caller.
type ProxyLogin struct {
	UserHeader   string // "" where they do not
	GroupsHeader string // comma-separated groups, "" for none
	Roles        domain.RoleLists
}

// proxyLogin identifies callers by the headers of trusted proxies.
type proxyLogin struct {
	ProxyLogin
	callers callers
}

// isOn reports whether proxies name the caller.
func (p proxyLogin) isOn() bool { return p.UserHeader != "" && len(p.callers.trustedProxies) > 0 }

// clean removes the headers from requests that did not come through a trusted proxy.
func (p proxyLogin) clean(next http.Handler) http.Handler {
	if p.UserHeader == "" && p.GroupsHeader == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.callers.trusts(parseAddress(r.RemoteAddr)) {
			r.Header.Del(p.UserHeader)
			r.Header.Del(p.GroupsHeader)
		}
		next.ServeHTTP(w, r)
	})
}

// identity returns the caller whom a proxy names, false if there is none. It returns Forbidden for a user without a
// role. More than one name counts as none: the proxy may have added its own to one that the caller sent.
func (p proxyLogin) identity(r *http.Request) (service.Identity, bool, error) {
	names := r.Header.Values(p.UserHeader)
	if !p.isOn() || len(names) != 1 || names[0] == "" {
		return service.Identity{}, false, nil
	}
	var groups []string
	for group := range strings.SplitSeq(strings.Join(r.Header.Values(p.GroupsHeader), ","), ",") {
		if group = strings.TrimSpace(group); group != "" {
			groups = append(groups, group)
		}
	}
	name := domain.CutText(strings.ToValidUTF8(names[0], "\uFFFD"))
	role := p.Roles.Of(groups, names[0])
	if role == "" {
		return service.Identity{}, true, domain.Errorf(domain.Forbidden,
			"You are %s, but have no access to this gateway. Ask its administrator for a role.", name)
	}
	actor := domain.Actor{Who: name, Via: domain.ViaProxy, Role: role, Account: "proxy " + names[0]}
	return service.Identity{Actor: actor}, true, nil
}
