//! The command and the environment of a container, as the kubelet delivers them. The code follows
//! `third_party/forked/golang/expansion/expand.go` of Kubernetes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;

/// The words and the variables that a program in a container receives.
pub(crate) struct Delivered {
    /// `command`, then `args`.
    pub(crate) words: Vec<String>,
    /// Variables by name. The value of a variable from a Secret is the variable's name and `-of-secret`.
    pub(crate) env: BTreeMap<String, String>,
}

pub(crate) fn deliver(container: &Container) -> Delivered {
    let mut env = BTreeMap::new();
    for variable in container.env.iter().flatten() {
        let value = match &variable.value {
            Some(value) => expand(value, &env),
            None => format!("{}-of-secret", variable.name),
        };
        env.insert(variable.name.clone(), value);
    }
    let words = [&container.command, &container.args].into_iter().flatten();
    Delivered {
        words: words.flatten().map(|word| expand(word, &env)).collect(),
        env,
    }
}

/// Works byte by byte, as Kubernetes does. If a `$` begins no reference, the next byte becomes a separate
/// character, even within a character of several bytes.
fn expand(input: &str, env: &BTreeMap<String, String>) -> String {
    let bytes = input.as_bytes();
    let mut output = Vec::new();
    let mut cursor = 0;
    while cursor < bytes.len() {
        let rest = &bytes[cursor + 1..];
        match (bytes[cursor], rest.first()) {
            (b'$', Some(b'$')) => {
                output.push(b'$');
                cursor += 2;
            }
            (b'$', Some(b'(')) => {
                if let Some(close) = rest.iter().position(|byte| *byte == b')') {
                    let name = String::from_utf8(rest[1..close].to_vec()).unwrap();
                    let value = env.get(&name).cloned();
                    output.extend(value.unwrap_or_else(|| format!("$({name})")).bytes());
                    cursor += close + 2;
                } else {
                    output.extend(b"$(");
                    cursor += 2;
                }
            }
            (b'$', Some(byte)) => {
                output.push(b'$');
                output.extend(char::from(*byte).to_string().bytes());
                cursor += 2;
            }
            (byte, _) => {
                output.push(byte);
                cursor += 1;
            }
        }
    }
    String::from_utf8_lossy(&output).into_owned()
}
