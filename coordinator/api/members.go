package api

import (
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/protocol"
)

// self describes this coordinator, whoever leads.
func (s *Server) self(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.cfg.Members.Self(), nil) }

func (s *Server) members(r *http.Request) (any, error) {
	return s.cfg.Members.List(r.Context()), nil
}

func (s *Server) addMember(r *http.Request) (any, error) {
	var req protocol.AddRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := protocol.CheckID(req.ID); err != nil {
		return nil, bad{err}
	}
	if err := protocol.CheckReachable(req.HTTP); err != nil {
		return nil, bad{fmt.Errorf("http %.80q: %w", req.HTTP, err)}
	}
	return s.cfg.Members.Add(r.Context(), req)
}

func (s *Server) removeMember(r *http.Request) (any, error) {
	return s.cfg.Members.Remove(r.Context(), r.PathValue("id"))
}

func (s *Server) transfer(r *http.Request) (any, error) {
	var req protocol.TransferRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := s.cfg.Members.Transfer(r.Context(), req.To); err != nil {
		return nil, err
	}
	return s.cfg.Members.List(r.Context()), nil
}
