//! Being let in: a password, or a token that another service gives for it.
//!
//! The flow is that of the distribution specification's token authentication, as Docker's registries, GitLab's,
//! GitHub's and the clouds' have it: the registry refuses once and names the service.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_schema::percent;
use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;
use ureq::Body;
use ureq::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use ureq::http::{Response, StatusCode};

use super::{RequestError, Session, errors, wait_for_retry};
use crate::challenge::{self, Challenge};
use crate::credentials::Credential;
use crate::retry::Backoff;

/// How long a token is valid if the service does not set it.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_mins(1);
/// A token is taken for old so long before its end.
const EXPIRY_MARGIN: Duration = Duration::from_secs(10);
/// No answer of a service is longer.
const MAX_RESPONSE_SIZE: u64 = 1 << 20;

/// The authorization of a request.
pub(super) struct Authorization {
    header: String,
    until: Option<Instant>,
}

/// The answer of a service that gives tokens.
#[derive(Deserialize)]
struct TokenResponse {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
    expires_in: Option<u64>,
}

impl Session {
    /// The authorization for a scope, if it is known and still valid.
    pub(super) fn authorization(&self, scope: &str) -> Option<String> {
        let known = self.lock();
        let found = known.get(scope)?;
        found.until.is_none_or(|until| Instant::now() < until).then(|| found.header.clone())
    }

    /// Forgets what a scope was let in with.
    pub(super) fn forget(&self, scope: &str) {
        self.lock().remove(scope);
    }

    /// Answers a challenge: finds the credentials for this registry, and gets a token if one is required.
    ///
    /// `refused` is the authorization that failed. If another thread got a newer one meanwhile, that is used.
    pub(super) fn log_in(
        &self,
        answer: &Response<Body>,
        scope: &str,
        refused: Option<&str>,
    ) -> std::result::Result<String, RequestError> {
        // Locked while the service is queried, so that several blobs query it once.
        let mut known = self.lock();
        if let Some(newer) = known.get(scope)
            && Some(newer.header.as_str()) != refused
        {
            return Ok(newer.header.clone());
        }
        let challenges: Vec<Challenge> = answer
            .headers()
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(challenge::parse)
            .collect();
        // Much is public: a helper that is not there matters only where a login is needed.
        let credential = self.credential(scope).unwrap_or_default();
        let by_scheme = |scheme: &str| challenges.iter().find(|challenge| challenge.scheme == scheme);
        let authorization = match (by_scheme("bearer"), by_scheme("basic"), credential) {
            (_, _, Some(Credential::Registry(token))) if refused.is_none() => {
                Authorization { header: format!("Bearer {token}"), until: None }
            }
            (Some(challenge), _, credential) => self
                .token(challenge, scope, credential)
                .map_err(|error| self.lookup_error().unwrap_or(error))?,
            (None, Some(_), Some(Credential::Password { user, password })) => {
                Authorization { header: basic_authorization(user, password), until: None }
            }
            (None, Some(_), _) => return Err(RequestError::Final(errors::login_required(self))),
            (None, None, _) => return Err(RequestError::Final(errors::unknown_challenge(self, &challenges))),
        };
        let header = authorization.header.clone();
        known.insert(scope.to_owned(), authorization);
        Ok(header)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<String, Authorization>> {
        self.authorizations.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The credentials for this registry: looked up once.
    fn credential(&self, scope: &str) -> Result<Option<&Credential>> {
        let repository = scope.split(':').nth(1).unwrap_or_default();
        let find = || self.credentials.find(&self.endpoint.registry, repository);
        self.credential.get_or_init(find).as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// Why the credentials could not be looked up, if they could not.
    pub(super) fn lookup_error(&self) -> Option<Error> {
        self.credential.get()?.as_ref().err().cloned()
    }

    /// Gets a token from the service that a challenge names.
    fn token(
        &self,
        challenge: &Challenge,
        scope: &str,
        credential: Option<&Credential>,
    ) -> Result<Authorization> {
        let realm = challenge.get("realm").ok_or_else(|| {
            Error::new(Kind::System, format!("the registry `{}` names no token service", self.endpoint.name))
        })?;
        if credential.is_some() {
            self.refuse_plaintext(realm)?;
        }
        let mut scopes = vec![scope];
        scopes.extend(
            challenge
                .get("scope")
                .into_iter()
                .flat_map(|requested| requested.split(' '))
                .filter(|requested| *requested != scope),
        );
        let service = challenge.get("service").map(|service| ("service", service));
        let mut backoff = Backoff::default();
        let given = loop {
            let mut fields: Vec<(&str, &str)> = service.into_iter().collect();
            let answer = if let Some(Credential::Identity(token)) = credential {
                let joined = scopes.join(" ");
                fields.extend([
                    ("grant_type", "refresh_token"),
                    ("client_id", "jobc"),
                    ("scope", joined.as_str()),
                ]);
                fields.push(("refresh_token", token));
                let request = self.agent.post(realm).content_type("application/x-www-form-urlencoded");
                request.send(form_encode(&fields).as_bytes())
            } else {
                fields.extend(scopes.iter().map(|scope| ("scope", *scope)));
                let separator = if realm.contains('?') { '&' } else { '?' };
                let mut request = self.agent.get(format!("{realm}{separator}{}", form_encode(&fields)));
                if let Some(Credential::Password { user, password }) = credential {
                    request = request.header(AUTHORIZATION, basic_authorization(user, password));
                }
                request.call()
            };
            match answer
                .map_err(|error| errors::no_response(self, &error))
                .and_then(|answer| self.read_token(answer, scope))
            {
                Ok(given) => break given,
                Err(trouble) => wait_for_retry(&mut backoff, trouble)?,
            }
        };
        let token = if given.token.is_empty() { given.access_token } else { given.token };
        if token.is_empty() || token.chars().any(char::is_control) {
            return Err(errors::no_token(self));
        }
        let holds = given
            .expires_in
            .map_or(DEFAULT_TOKEN_LIFETIME, Duration::from_secs)
            .saturating_sub(EXPIRY_MARGIN)
            .max(EXPIRY_MARGIN);
        // An age of centuries overflows the clock: then it does not end.
        Ok(Authorization { header: format!("Bearer {token}"), until: Instant::now().checked_add(holds) })
    }

    fn read_token(
        &self,
        answer: Response<Body>,
        scope: &str,
    ) -> std::result::Result<TokenResponse, RequestError> {
        if matches!(
            answer.status(),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST
        ) {
            return Err(RequestError::Final(errors::denied(self, scope, answer)));
        }
        let mut answer = self.classify_response(answer)?;
        if !answer.status().is_success() {
            return Err(RequestError::Final(super::unexpected_response(self, answer)));
        }
        let text = answer.body_mut().with_config().limit(MAX_RESPONSE_SIZE).read_to_vec();
        let text = text.map_err(|error| errors::no_response(self, &error))?;
        serde_json::from_slice(&text).map_err(|_| RequestError::Final(errors::no_token(self)))
    }

    /// Refuses to send a password in clear text to a service on another host, where the registry itself speaks TLS.
    fn refuse_plaintext(&self, realm: &str) -> Result<()> {
        let open = realm.strip_prefix("http://").filter(|_| self.endpoint.address.starts_with("https://"));
        match open {
            None => Ok(()),
            Some(_) => Err(Error::new(
                Kind::System,
                format!(
                    "the registry `{}` wants your password sent to `{realm}` in clear text",
                    self.endpoint.name
                ),
            )
            .help("ask the operator of the registry for a token service with https")),
        }
    }
}

fn basic_authorization(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Fields as a query or a form.
fn form_encode(fields: &[(&str, &str)]) -> String {
    fields
        .iter()
        .map(|(name, value)| format!("{name}={}", percent::encode_segment(value)))
        .collect::<Vec<_>>()
        .join("&")
}
