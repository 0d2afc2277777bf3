/*
 * session.h - the conversation of one fit with the supervisor.
 */
#ifndef AG_SESSION_H
#define AG_SESSION_H

/* Serves one fit on the socket; returns the program's exit status. */
int ag_session_serve(int socket, const char *build_id);

#endif
