//! Passwords of the databases that the operator runs itself. The operator makes them when it creates the Secret
//! and keeps them nowhere else.

use k8s_openapi::api::core::v1::Secret;

/// A login's Secret with a new password, and with the URI that contains the password.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn filled(mut secret: Secret) -> Result<Secret, getrandom::Error> {
    let password = new()?;
    let data = secret.string_data.get_or_insert_default();
    let part = |key: &str| data.get(key).cloned().unwrap_or_default();
    let uri = format!(
        "postgresql://{}:{password}@{}:{}/{}",
        part("username"),
        part("host"),
        part("port"),
        part("dbname")
    );
    data.extend([("password".into(), password), ("uri".into(), uri)]);
    Ok(secret)
}

/// 128 bits from the system, as 32 hex digits: they need no quoting in a URI.
fn new() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_login_has_its_own_password_and_its_uri_contains_it() {
        let secret = Secret {
            string_data: Some(
                [
                    ("username", "app"),
                    ("host", "db-rw"),
                    ("port", "5432"),
                    ("dbname", "shop"),
                ]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ),
            ..Secret::default()
        };
        let [one, other] = [(); 2].map(|()| filled(secret.clone()).unwrap().string_data.unwrap());
        let password = &one["password"];
        assert_eq!(password.len(), 32);
        assert_ne!(*password, other["password"]);
        assert_eq!(
            one["uri"],
            format!("postgresql://app:{password}@db-rw:5432/shop")
        );
    }
}
