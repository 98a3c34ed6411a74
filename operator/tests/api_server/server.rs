//! One API server for all tests of this program.

use std::{
    fmt::Write as _,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use kube::{Client, Config};

use super::cluster;

/// Namespace that the chart is rendered for.
pub(crate) const SYSTEM: &str = "frugality-system";
/// Namespace of the operator that may run benchmarks in every namespace. It has an account only.
pub(crate) const EVERYWHERE: &str = "frugality-everywhere";
/// Group of all service accounts.
pub(crate) const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// How long it may take to start.
const START: Duration = Duration::from_secs(60);

/// Who asks the API server. Each has a token of the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum User {
    /// May do everything.
    Admin,
    /// The operator's service account, with the rights that the chart gives it.
    Operator,
    /// The account of an operator that may run benchmarks in every namespace.
    Everywhere,
    /// Has the chart's role `frugality-edit` in each test's namespace.
    Editor,
    /// Has the chart's role `frugality-view` there.
    Viewer,
    /// Some service account, without a role. Kubernetes gives rights to each service account, from 1.37 on more.
    Stranger,
}

impl User {
    const ALL: [Self; 6] = [
        Self::Admin,
        Self::Operator,
        Self::Everywhere,
        Self::Editor,
        Self::Viewer,
        Self::Stranger,
    ];

    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Everywhere => "everywhere",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
            Self::Stranger => "stranger",
        }
    }

    /// Name by which the API server knows the user.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Operator => format!("system:serviceaccount:{SYSTEM}:frugality-operator"),
            Self::Everywhere => format!("system:serviceaccount:{EVERYWHERE}:frugality-operator"),
            _ => self.token().to_owned(),
        }
    }

    fn groups(self) -> String {
        match self {
            Self::Admin => "system:masters".into(),
            Self::Operator => format!("{SERVICE_ACCOUNTS},{SERVICE_ACCOUNTS}:{SYSTEM}"),
            Self::Everywhere => format!("{SERVICE_ACCOUNTS},{SERVICE_ACCOUNTS}:{EVERYWHERE}"),
            Self::Stranger => SERVICE_ACCOUNTS.into(),
            Self::Editor | Self::Viewer => String::new(),
        }
    }
}

/// The API server.
pub(crate) struct Server {
    url: String,
    authority: Vec<u8>,
    /// Ends both programs and removes their files when its standard input ends: that is when this process ends, in
    /// whatever way. A static has no `Drop`.
    _keeper: Child,
}

/// Both programs, until the tests' process ends. `$1` is the folder, `$2` the port.
const KEEPER: &str = r#"
cd "$1" || exit
"$FRUGALITY_KINE" --listen-address "unix://$1/kine.sock" \
  --endpoint "sqlite://$1/state.db?_journal=WAL&cache=shared&_busy_timeout=30000&_synchronous=OFF" >kine.log 2>&1 &
kine=$!
"$FRUGALITY_KUBE_APISERVER" --etcd-servers="unix://$1/kine.sock" \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$2" --endpoint-reconciler-type=none \
  --tls-cert-file=server.crt --tls-private-key-file=server.key --cert-dir=. \
  --service-cluster-ip-range=10.0.0.0/24 --allow-privileged=true --enable-priority-and-fairness=false \
  --authorization-mode=RBAC --token-auth-file=tokens.csv --disable-admission-plugins=ServiceAccount \
  --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file=account.pub --service-account-signing-key-file=account.key >kube-apiserver.log 2>&1 &
server=$!
cat >/dev/null
kill -KILL "$server" "$kine"
wait
cd / && rm -rf "$1"
"#;

/// The API server of this process; started if it is not yet.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        // A test's runtime can't wait for another one on its own thread.
        let started = std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(Server::start())
        });
        // It is not tried again: each test would wait for it.
        started.join().ok()
    });
    server
        .as_ref()
        .expect("there is no API server: the first panic says why")
}

/// A program that a variable names.
pub(crate) fn program(variable: &str, part: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.filter(|path| path.is_file());
    path.unwrap_or_else(|| {
        panic!(
            "{variable} does not name a program. Run all of it: hack/test unit. Or build the program and set the \
             variable: hack/lab/lab build {part} && export {variable}=$(hack/lab/lab part {part})"
        )
    })
}

impl Server {
    async fn start() -> Self {
        program("FRUGALITY_KUBE_APISERVER", "kube-apiserver");
        program("FRUGALITY_KINE", "kine");
        let folder = std::env::temp_dir().join(format!("frugality-api-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let authority = files(&folder);
        let port = free_port();
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .args([&folder, &PathBuf::from(port.to_string())])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Self {
            url: format!("https://127.0.0.1:{port}"),
            authority,
            _keeper: keeper,
        };
        let admin = server.client(User::Admin);
        let began = Instant::now();
        while !is_ready(&admin).await {
            assert!(
                began.elapsed() < START,
                "the API server is not ready after {} s:\n{}",
                START.as_secs(),
                fs::read_to_string(folder.join("kube-apiserver.log")).unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        cluster::prepare(&admin).await;
        server
    }

    /// A client without a proxy. It repeats nothing by itself.
    pub(crate) fn client(&self, user: User) -> Client {
        let mut config = self.config();
        config.auth_info.token = Some(user.token().to_owned().into());
        Client::try_from(config).unwrap()
    }

    /// Where it is, for a proxy: what asks brings its own token.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(self.url.parse().unwrap());
        config.root_cert = Some(vec![self.authority.clone()]);
        config.default_retry = false;
        config
    }
}

/// The server's files; its certificate is returned.
fn files(folder: &Path) -> Vec<u8> {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let tls = rcgen::generate_simple_self_signed(names).unwrap();
    write("server.crt", &tls.cert.pem());
    write("server.key", &tls.signing_key.serialize_pem());
    let account = rcgen::KeyPair::generate().unwrap();
    write("account.key", &account.serialize_pem());
    write("account.pub", &account.public_key_pem());
    let mut tokens = String::new();
    for user in User::ALL {
        let (token, name, groups) = (user.token(), user.name(), user.groups());
        writeln!(tokens, "{token},{name},{token},\"{groups}\"").unwrap();
    }
    write("tokens.csv", &tokens);
    tls.cert.der().to_vec()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

async fn is_ready(client: &Client) -> bool {
    let request = axum::http::Request::get("/readyz").body(Vec::new());
    client.request_text(request.unwrap()).await.is_ok()
}
